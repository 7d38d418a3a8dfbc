/** A person's order, by the rules of the runs; the store is a few variables, the wire and the time are the power tests'. */
import type { NetboxClient } from '../../src/contracts/netbox.js';
import type { CommandResult } from '../../src/contracts/bmc.js';
import { createHand, type HandAsk, type HandDeps } from '../../src/power/by-hand.js';
import { createBmcLeases } from '../../src/power/lease.js';
import { personCaller } from '../../src/power/person.js';
import type { Found } from '../../src/power/target.js';
import { VirtualTime } from '../support/power/virtual-time.js';
import { Wire, type Fate } from '../support/power/wire.js';
import { deviceOf } from '../support/store-bench.js';

const LIMITS = { powerSeconds: 60, settlingSeconds: 180, pollSeconds: 2 };
const PATIENCE_SECONDS = 60;

class Bench {
  readonly time = new VirtualTime();
  readonly told: string[] = [];
  readonly lines: string[] = [];
  readonly intents = new Map<string, CommandResult | null>();
  readonly powers: string[] = [];
  holder: string | null = null;
  openRun: number | null = null;
  readonly wire: Wire;
  #changedAt: string | null = null;
  readonly #hand: ReturnType<typeof createHand>;

  constructor({ fate = 'answered', reads = () => 'answered', lagMs = 3000 }: { fate?: Fate; reads?: () => 'answered' | 'lost'; lagMs?: number } = {}) {
    this.wire = new Wire(this.time, { power: 'on', lagMs: () => lagMs, fateOfCommand: () => fate, fateOfRead: reads, readMs: () => 50 });
    const caller = personCaller({ name: 'ada', pid: 7, patienceSeconds: PATIENCE_SECONDS, tell: (text) => void this.told.push(text) });
    const power: HandDeps['stores']['power'] & { unlock: (bmc: string, holder: string) => Promise<void> } = {
      lock: async (_bmc, holder) => (this.holder ??= holder) === holder,
      unlock: async () => void (this.holder = null),
      intendByHand: async (_device, { id, text }) => {
        if (this.openRun !== null) return { kind: 'run-open', run: this.openRun };
        this.intents.set(id, null);
        this.#changedAt = new Date(this.time.now()).toISOString();
        this.lines.push(text);
        return { kind: 'written' };
      },
      answered: async (id, answer) => void this.intents.set(id, answer),
      lastChangeAt: async () => this.#changedAt,
    };
    const devices = { find: async () => null, setPower: async (_id: string, word: string) => void this.powers.push(word), journal: async (...[, , , text]: [unknown, unknown, unknown, string]) => void this.lines.push(text) };
    const netbox: Pick<NetboxClient, 'addJournalEntry'> = { addJournalEntry: async () => { throw new Error('NetBox is away'); } };
    this.#hand = createHand({
      leases: createBmcLeases({ bmc: this.wire.factory({ alive: true, intent: 'by hand' }), power, lockSeconds: 60, clock: this.time, caller }),
      stores: { devices, power }, netbox, limits: LIMITS, clock: this.time, caller, user: 'ada', tell: (text) => void this.told.push(text),
    });
  }
  order(ask: { what: 'on' | 'off' } | { what: 'pxe'; reboot: boolean }, found: Found = DEVICE): Promise<unknown> {
    return this.time.run(this.#hand(found, { by: null, reason: null, duringRun: false, ...ask } as HandAsk)).catch((error: { code: string }) => error.code ?? error);
  }
  sent(): string[] {
    return this.wire.commands.map(({ command }) => command);
  }
}

const device = deviceOf();
const address = { type: 'amt', host: '10.0.0.7' } as const;
const bmc = { type: 'amt', address: '10.0.0.7' } as const;
const DEVICE: Found = { address, device, subject: { device: { id: device.id, name: device.name, openRun: null }, bmc } };
const BARE: Found = { address, device: null, subject: { device: null, bmc } };

test('it is written before the wire, seen after, and the person is told what goes on', async () => {
  const bench = new Bench();
  expect(await bench.order({ what: 'off' })).toMatchObject({ power: 'off', commands: ['off'], armed: false });
  expect([bench.sent(), [...bench.intents.values()], bench.holder]).toEqual([['off'], [{ kind: 'accepted' }], null]);
  expect(bench.lines).toEqual(["power off asked by ada's hand (metalflow bmc off)", "power off seen by ada's hand (metalflow bmc off)"]);
  expect(bench.told).toEqual(['asked off; reads on', 'asked off; reads off', "NetBox's journal was not written: NetBox is away"]);
  expect(bench.powers.at(-1)).toBe('off');
});

test.each<Fate>(['answer-lost', 'dropped'])('one command goes out and its answer is looked for, not asked for again: %s', async (fate) => {
  const bench = new Bench({ fate });
  expect(await bench.order({ what: 'off' })).toEqual(fate === 'dropped' ? 'bmc_outcome_unknown' : expect.objectContaining({ power: 'off', commands: ['off'] }));
  expect(bench.sent()).toEqual(['off']);
  expect(bench.told).toContain(`no answer to off (${fate}): it is not sent again, only looked at`);
});

test.each<[Fate, string]>([['no-connection', 'bmc_not_sent'], ['refused', 'bmc_refused']])('what surely had no effect is said so, and the attempt is in the journal: %s', async (fate, code) => {
  const bench = new Bench({ fate });
  expect(await bench.order({ what: 'off' })).toBe(code);
  expect(bench.lines.at(-1)).toBe(`power off ended with ${code}, by ada's hand (metalflow bmc off)`);
});

test.each<[string, Found]>([['a device', DEVICE], ['a bare address, of which nothing is kept', BARE]])('the silence of an AMT after the command is settling, not gone: %s', async (_what, found) => {
  let silentUntil = Infinity;
  const bench: Bench = new Bench({ reads: () => (bench.wire.commands.length > 0 && bench.time.now() < silentUntil ? 'lost' : 'answered') });
  silentUntil = bench.time.now() + (LIMITS.powerSeconds + LIMITS.settlingSeconds / 2) * 1000;
  expect(await bench.order({ what: 'off' }, found)).toMatchObject({ power: 'off', commands: ['off'] });
  expect(bench.told.some((text) => text.startsWith('asked off; reads settling'))).toBe(true);
});

test('a run that was opened meanwhile keeps the person off, and nothing is sent', async () => {
  const bench = new Bench();
  bench.openRun = 3;
  expect([await bench.order({ what: 'off' }), bench.sent()]).toEqual(['bmc_run_open', []]);
});

test('a BMC that somebody talks to is waited for, and not for ever', async () => {
  const bench = new Bench();
  bench.holder = 'a worker';
  const began = bench.time.now();
  expect([await bench.order({ what: 'off' }), bench.sent()]).toEqual(['bmc_busy', []]);
  expect(bench.time.now() - began).toBe(PATIENCE_SECONDS * 1000);
  expect(bench.told).toEqual(['waiting for another conversation with the BMC 10.0.0.7']);
});
