/** The power watch reads and tells, over a real store; it has nothing to send a command with. */
import { createPowerWatchActivities } from '../../src/activities/power-watch.js';
import type { Bmc, UuidReading } from '../../src/contracts/bmc.js';
import type { PowerWalk } from '../../src/contracts/power-watch.js';
import type { PowerReading } from '../../src/domain/power.js';
import type { LifecycleState } from '../../src/domain/states.js';
import { MetalflowError } from '../../src/domain/errors.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { runActivity } from '../support/activity-env.js';
import { VirtualTime } from '../support/power/virtual-time.js';
import { StoreBench, UUID } from '../support/store-bench.js';

const OTHER = UUID.replace('4c4c', '5d5d');
const SILENT: PowerReading = { kind: 'unknown', code: 'bmc_unreachable', why: 'timeout' };

let store: StoreBench;
let time: VirtualTime;
/** By BMC host. */
let readings: Map<string, PowerReading | Error>;
let uuid: UuidReading;
let told: [id: string, name: string, payload: unknown][];
let commands: string[];
let inFlight: number;
let most: number;
let beats: unknown[];
beforeAll(async () => void (store = await StoreBench.open()));
beforeEach(async () => {
  await store.clean();
  [time, readings, uuid, told, commands, inFlight, most, beats] = [new VirtualTime(), new Map(), { kind: 'read', uuid: UUID }, [], [], 0, 0, []];
  store.setNow(time.now());
});
afterAll(() => store.close());

async function walk(atOnce = 4): Promise<PowerWalk> {
  const watch = createPowerWatchActivities({
    stores: store.store, lockSeconds: 60, clock: time, random: () => 0.5, log: silentLogger(),
    temporal: { signal: async (id, name, payload) => (told.push([id, name, payload]), 'delivered') },
    bmc: {
      open: async (address) => {
        const reading = readings.get(address.host) ?? { kind: 'read', power: 'on' };
        if (reading instanceof Error) throw reading;
        const command = async (): Promise<never> => {
          commands.push(address.host);
          throw new Error('the watch commands nothing');
        };
        return {
          address, powerOn: command, powerOff: command, bootOnceFromNetwork: command, identify: async () => null, capabilities: async () => null, diagnose: async () => [], close: async () => undefined, machineUuid: async () => uuid,
          async observePower() {
            most = Math.max(most, ++inFlight);
            await time.pause(1000);
            inFlight--;
            return reading;
          },
        } satisfies Bmc;
      },
    },
  });
  const caller = { workflowId: 'power-watch/lab', temporalRunId: 'r', onHeartbeat: (details: unknown) => void beats.push(details) };
  return time.run(runActivity(caller, watch.watchPower, { site: 'lab', atOnce, jitterSeconds: 1, settlingSeconds: 180 }));
}
const declare = (id: string, state: LifecycleState = 'active') => store.declare({ id, name: `node-${id}`, macs: [], addresses: [], bmc: { type: 'amt', host: `bmc-${id}` } }, state);
const be = (state: LifecycleState): Promise<void> => store.store.devices.setState('7', { state, previousState: null, hold: null, because: 'test' });
const node = () => store.store.nodes.find('7');

test('each node is looked at, so many at once, and the heart beats at each', async () => {
  for (const id of ['21', '22', '23', '24', '25']) await declare(id);
  expect(await walk(2)).toEqual({ observed: 6, unknown: 0, busy: 0, drifted: 0 });
  expect(most).toBe(2);
  expect(beats).toHaveLength(6);
  expect(beats.at(-1)).toEqual({ busy: 0, known: 6, unknown: 0, of: 6 });
});

test('a change is told to the lifecycle once', async () => {
  await walk();
  await walk();
  expect(told).toEqual([['node/7', 'powerSeen', { power: 'on' }]]);
  readings.set('10.0.0.7', { kind: 'read', power: 'off-soft' });
  await walk();
  await walk();
  expect(told.slice(1)).toEqual([['node/7', 'powerSeen', { power: 'off' }]]);
});

test('an active node that is found off is told, never powered on', async () => {
  await be('active');
  await walk();
  readings.set('10.0.0.7', { kind: 'read', power: 'off-hard' });
  expect(await walk()).toMatchObject({ drifted: 1 });
  await walk();
  expect(await node()).toMatchObject({ power: 'off', drift: { state: 'active', expected: 'on', reads: 'off' } });
  expect((await store.journal()).filter((text) => text.startsWith('power drift'))).toHaveLength(1);
  expect(commands).toEqual([]);
});

test('silence is unknown, never off, and no drift', async () => {
  await be('active');
  readings.set('10.0.0.7', SILENT);
  expect(await walk()).toMatchObject({ observed: 1, unknown: 1, drifted: 0 });
  expect(await node()).toMatchObject({ power: 'unknown', drift: null });
});

test('the silence of an AMT after a power change is settling', async () => {
  const ref = await store.begin();
  await store.store.power.intend(ref, { id: 'i', command: 'off' }, null);
  await store.store.power.answered('i', { kind: 'accepted' });
  readings.set('10.0.0.7', SILENT);
  await walk();
  expect([(await node())?.power, told]).toEqual(['settling', []]);
});

test('a change that another machine reads is not believed', async () => {
  await be('active');
  await walk();
  uuid = { kind: 'read', uuid: OTHER };
  readings.set('10.0.0.7', { kind: 'read', power: 'off-soft' });
  expect(await walk()).toMatchObject({ unknown: 1, drifted: 0 });
  expect((await node())?.power).toBe('unknown');
});

test('a BMC that a run talks to is passed over', async () => {
  await store.store.power.lock('10.0.0.7', 'a run', 60);
  expect(await walk()).toEqual({ observed: 0, unknown: 0, busy: 1, drifted: 0 });
  expect((await node())?.powerAt).toBeNull();
});

test('a BMC that this worker had no turn to ask is passed over too: nothing is kept, nothing told', async () => {
  await walk();
  const before = await node();
  readings.set('10.0.0.7', { ...SILENT, notAsked: true });
  expect(await walk()).toEqual({ observed: 0, unknown: 0, busy: 1, drifted: 0 });
  expect([await node(), told]).toEqual([before, [['node/7', 'powerSeen', { power: 'on' }]]]);
});

test('a change is not judged while this worker had no turn to ask for the machine', async () => {
  await walk();
  uuid = { kind: 'unknown', code: 'bmc_unreachable', why: 'no turn', notAsked: true };
  readings.set('10.0.0.7', { kind: 'read', power: 'off-soft' });
  expect(await walk()).toMatchObject({ busy: 1, unknown: 0 });
  expect((await node())?.power).toBe('on');
});

test("one node's trouble is not the next one's: without a secret, and with a driver that breaks", async () => {
  await declare('21');
  await declare('22');
  readings.set('10.0.0.7', new MetalflowError('bmc_auth_failed', { address: 'x', secret: 'bmc-amt.json' }));
  readings.set('bmc-21', new TypeError('a bug'));
  expect(await walk()).toEqual({ observed: 3, unknown: 2, busy: 0, drifted: 0 });
  expect((await store.store.nodes.find('22'))?.power).toBe('on');
});

test('a walk that came to its end is noted', async () => {
  await store.store.powerWatch.plan('lab', 300);
  await walk();
  expect((await store.store.powerWatch.plans())[0]!.walkedAt).not.toBeNull();
});
