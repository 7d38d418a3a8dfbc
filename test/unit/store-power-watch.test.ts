/** What the power watch keeps: readings with their time, one journal line a change, and when each site was walked over. */
import type { LifecycleState } from '../../src/domain/states.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const watch = () => bench.store.powerWatch;
const be = (state: LifecycleState, deviceId = '7'): Promise<void> => bench.store.devices.setState(deviceId, { state, previousState: null, hold: null, because: 'test' });
const powerLines = async (): Promise<string[]> => (await bench.store.nodes.journal('7', 100)).filter(({ kind }) => kind === 'power').map(({ text }) => text).reverse();

describe('which nodes are watched', () => {
  test('those of the site that have a BMC to read, the longest unseen first', async () => {
    await bench.declare({ id: '8', name: 'node-8', macs: [], addresses: [], bmc: { type: 'amt', host: '10.0.0.8', port: 17000 } });
    await bench.declare({ id: '9', name: 'manual', macs: [], addresses: [], bmc: { type: 'manual', host: '' } });
    await bench.declare({ id: '10', name: 'no BMC', macs: [], addresses: [], bmc: null });
    await bench.declare({ id: '11', name: 'elsewhere', macs: [], addresses: [], site: 'other' });
    await watch().saw('7', 'on');
    expect(await watch().nodes('lab')).toEqual([
      expect.objectContaining({ deviceId: '8', name: 'node-8', bmc: { type: 'amt', host: '10.0.0.8', port: 17000 }, power: 'unknown' }),
      expect.objectContaining({ deviceId: '7', power: 'on' }),
    ]);
  });
  test.each<[LifecycleState, number]>([['maintenance', 0], ['withdrawn', 0], ['retired-unproven', 0], ['active', 1], ['retired', 1], ['provisioning', 1]])('a node that is %s: %i', async (state, count) => {
    await be(state);
    expect(await watch().nodes('lab')).toHaveLength(count);
  });
});

test('a node that is retired is watched for a day, and one that is active for ever', async () => {
  await bench.declare({ id: '8', name: 'node-8', macs: [], addresses: [], bmc: { type: 'amt', host: '10.0.0.8' } }, 'active');
  await be('retired');
  const watched = async (): Promise<string[]> => (await watch().nodes('lab')).map(({ deviceId }) => deviceId).sort();
  bench.pass(24 * 3600);
  expect(await watched()).toEqual(['7', '8']);
  bench.pass(1);
  expect(await watched()).toEqual(['8']);
});

describe('a reading', () => {
  test('is kept with its time, and so is the last answer of the BMC', async () => {
    await watch().saw('7', 'on');
    bench.pass(300);
    await watch().saw('7', 'unknown');
    expect(await bench.store.nodes.find('7')).toMatchObject({ power: 'unknown', powerAt: '2026-11-30T12:05:00.000Z', bmcSeenAt: '2026-11-30T12:00:00.000Z' });
  });
  test('of a run is one too', async () => {
    await bench.store.devices.setPower('7', 'off');
    expect(await bench.store.nodes.find('7')).toMatchObject({ power: 'off', bmcSeenAt: '2026-11-30T12:00:00.000Z' });
    expect((await bench.store.devices.find('7'))?.power).toBe('off');
  });
  test('is news to the lifecycle until it was told, once a change; settling is none', async () => {
    expect((await watch().saw('7', 'on')).tell).toBe('on');
    expect((await watch().saw('7', 'on')).tell).toBe('on');
    await watch().told('7', 'on');
    expect((await watch().saw('7', 'on')).tell).toBeNull();
    expect((await watch().saw('7', 'settling')).tell).toBeNull();
    expect((await watch().saw('7', 'unknown')).tell).toBe('unknown');
  });
  test('of a run makes what the lifecycle was told before count no more, unless it is the same', async () => {
    await watch().saw('7', 'on');
    await watch().told('7', 'on');
    await bench.store.devices.setPower('7', 'on');
    expect((await watch().saw('7', 'on')).tell).toBeNull();
    await bench.store.devices.setPower('7', 'off');
    expect((await watch().saw('7', 'on')).tell).toBe('on');
  });
  test('of a device that is gone is nothing', async () => {
    expect(await watch().saw('99', 'on')).toEqual({ tell: null, drift: null, driftChanged: false });
  });
});

describe('drift', () => {
  beforeEach(() => be('active'));
  test('is one line a change, however often it is read, and silence changes nothing', async () => {
    const kinds: boolean[] = [];
    for (const power of ['on', 'off', 'off', 'unknown', 'off', 'on', 'on'] as const) kinds.push((await watch().saw('7', power)).driftChanged);
    expect(kinds).toEqual([false, true, false, false, false, true, false]);
    expect(await powerLines()).toEqual(['power drift: active should be on (its system runs), and the BMC reads off; nothing was commanded', 'the power fits again: active, and the BMC reads on']);
  });
  test('ends in a state of which nothing is expected, and the journal does not say that the power fits', async () => {
    await watch().saw('7', 'off');
    await be('failed');
    expect(await watch().saw('7', 'unknown')).toMatchObject({ drift: null, driftChanged: true });
    expect((await powerLines()).at(-1)).toBe('the power drift is over: nothing is expected of a node that is failed (its run left it as it was)');
  });
  test('is shown while the node is in the state it was judged in', async () => {
    await watch().saw('7', 'off');
    const drift = { state: 'active', expected: 'on', reads: 'off' };
    expect((await bench.store.nodes.find('7'))?.drift).toEqual(drift);
    expect(await watch().all()).toEqual([expect.objectContaining({ deviceId: '7', drift, hasToAnswer: true })]);
    await be('provisioning');
    expect((await bench.store.nodes.find('7'))?.drift).toBeNull();
    expect((await watch().all())[0]!.drift).toBeNull();
  });
});

test.each<[LifecycleState, boolean]>([['active', true], ['failed', true], ['maintenance', false], ['retired', false], ['retired-unproven', false]])('the BMC of a node that is %s has to answer: %s', async (state, has) => {
  await be(state);
  expect((await watch().all())[0]!.hasToAnswer).toBe(has);
});

test('a site has a plan, which says when it was walked over; a watch that is turned off has none', async () => {
  await watch().plan('lab', 300);
  bench.pass(10);
  await watch().plan('lab', 60);
  expect(await watch().plans()).toEqual([{ site: 'lab', everySeconds: 60, since: '2026-11-30T12:00:00.000Z', walkedAt: null }]);
  await watch().walked('lab');
  expect(await watch().plans()).toEqual([expect.objectContaining({ walkedAt: '2026-11-30T12:00:10.000Z' })]);
  await watch().plan('lab', null);
  expect(await watch().plans()).toEqual([]);
});
