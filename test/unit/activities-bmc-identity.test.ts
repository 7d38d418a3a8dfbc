import { createBmcIdentityActivities, type BmcIdentityDeps } from '../../src/activities/bmc-identity.js';
import { createManualBmc } from '../../src/bmc/manual.js';
import type { BmcIdentity } from '../../src/contracts/bmc.js';
import { MetalflowError } from '../../src/domain/errors.js';
import { runActivity } from '../support/activity-env.js';

const BMC = { type: 'amt', host: '192.0.2.7', port: 16_993 } as const;
const AMT: BmcIdentity = { product: 'Intel(r) AMT', version: '16.1.25' };

class Bench {
  readonly journal: string[] = [];
  readonly locks: string[] = [];
  open = 0;
  fenced = false;
  identity: BmcIdentity | null = AMT;
  refuses: MetalflowError | null = null;

  note(): Promise<BmcIdentity | null> {
    const stores = {
      fence: { enter: async () => { if (this.fenced) throw new MetalflowError('run_superseded'); } },
      power: { lock: async (key: string) => this.locks.push(key) > 0, unlock: async (key: string) => void this.locks.splice(this.locks.indexOf(key), 1) },
      devices: { journal: async (deviceId: string, run: number | null, kind: string, text: string) => void this.journal.push(`${deviceId}/${run} ${kind}: ${text}`) },
    } as unknown as BmcIdentityDeps['stores'];
    const bmc: BmcIdentityDeps['bmc'] = {
      open: async (address) => {
        if (this.refuses) throw this.refuses;
        this.open += 1;
        return { ...createManualBmc(address), identify: async () => this.identity, close: async () => void (this.open -= 1) };
      },
    };
    const { noteBmc } = createBmcIdentityActivities({ bmc, stores, lockSeconds: 60 });
    return runActivity({ workflowId: 'node/7/run/1', temporalRunId: 'temporal-run-1' }, noteBmc, { deviceId: '7', run: 1, bmc: BMC });
  }
}

let bench: Bench;
beforeEach(() => void (bench = new Bench()));
afterEach(() => expect([bench.open, bench.locks]).toEqual([0, []]));

test('the firmware of the BMC is a line in the journal of its run', async () => {
  expect(await bench.note()).toEqual(AMT);
  expect(bench.journal).toEqual(['7/1 run: the BMC at 192.0.2.7:16993 is Intel(r) AMT 16.1.25']);
});
test('a BMC that does not say is no line and no failure', async () => {
  bench.identity = null;
  expect(await bench.note()).toBeNull();
  expect(bench.journal).toEqual([]);
});
test('a BMC that cannot be opened is no failure: the next command will say so', async () => {
  bench.refuses = new MetalflowError('bmc_auth_failed', { address: '192.0.2.7', secret: 'bmc-amt' });
  expect(await bench.note()).toBeNull();
});
test('a run that is no longer the current one notes nothing', async () => {
  bench.fenced = true;
  await expect(bench.note()).rejects.toMatchObject({ message: expect.stringContaining('newer run') });
  expect(bench.journal).toEqual([]);
});
