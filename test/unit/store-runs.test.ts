/** Runs and devices: numbers that never come back, one outcome that stands, and what a person did is left alone. */
import { deviceOf, StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const begun = { asked: { how: 'netbox' }, intake: null } as const;
const open = (kind: 'provision' | 'wipe' = 'provision') => bench.store.runs.open('7', kind, begun);

describe('the number of a run', () => {
  test('is never reused, whatever became of the run', async () => {
    for (const [at, end] of (['done', 'failed', 'cancelled', 'withdrawn', 'run-closed'] as const).entries()) {
      expect(await open()).toEqual({ run: at + 1, kind: 'provision', workflowId: `node/7/run/${at + 1}`, begun, isNew: true });
      await bench.store.runs.close('7', at + 1, { end, failure: null, destroyed: false }, null);
    }
    expect(await bench.store.runs.nextNumber('7')).toBe(6);
  });
  test('of the open run is given to everybody who opens one, with the kind and the beginning it has', async () => {
    await bench.store.runs.open('7', 'wipe', { asked: { how: 'retry', by: 'ann' }, intake: { attestationId: 'a' } });
    expect(await open('provision')).toEqual({ run: 1, kind: 'wipe', workflowId: 'node/7/run/1', begun: { asked: { how: 'retry', by: 'ann' }, intake: { attestationId: 'a' } }, isNew: false });
  });
  test('is drawn once by two who open at once', async () => {
    const both = await Promise.all([open(), open()]);
    expect(both.map((one) => [one.run, one.isNew]).sort()).toEqual([[1, false], [1, true]]);
  });
  test('begins anew for no device: one that is declared again goes on counting', async () => {
    const { run } = await open();
    await bench.store.runs.close('7', run, { end: 'done', failure: null, destroyed: false }, null);
    await bench.store.devices.setState('7', { state: 'retired', previousState: null, hold: null, because: 'x' });
    await bench.declare({ status: 'planned' });
    expect(await open()).toMatchObject({ run: 2 });
  });
  test('of a device that the store does not know is the first', async () => {
    expect(await bench.store.runs.nextNumber('99')).toBe(1);
  });
});

describe('the end of a run', () => {
  test('is the first that is written; the next one reads it', async () => {
    const ref = await bench.begin();
    const first = await bench.store.runs.close('7', ref.run, { end: 'failed', failure: null, destroyed: false, by: 'the run' }, ref);
    expect(first).toEqual({ end: 'failed', failure: null, destroyed: false, by: 'the run' });
    // The run's own late word, after the lifecycle closed it, is no error either.
    for (const by of [null, ref]) expect(await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: true }, by)).toEqual(first);
    expect((await bench.journal()).filter((text) => text.includes('ended'))).toEqual(['run 1 (provision) ended: failed']);
  });
  test('says of what was destroyed what the ledger says, not what its caller thinks', async () => {
    const ref = await bench.begin();
    expect(await bench.store.runs.close('7', ref.run, { end: 'cancelled', failure: null, destroyed: true }, ref)).toMatchObject({ destroyed: false });
  });
  test('withdraws everything that the run had opened', async () => {
    const ref = await bench.begin();
    const { bootAttempt, token } = await bench.boot(ref);
    await bench.store.permissions.lease(ref, bootAttempt, 300);
    const { orderId } = await bench.post(ref, bootAttempt);
    await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: false }, ref);
    expect(await bench.store.orders.result('7', orderId)).toEqual({ kind: 'cancelled', why: 'run 1 ended: done' });
    expect(await bench.store.orderDesk.session(token)).toBeNull();
    expect(await bench.store.devices.withOpenWork()).toEqual([]);
    expect(await bench.store.devices.find('7')).toMatchObject({ openRun: null, lastRun: { run: 1, kind: 'provision', outcome: { end: 'done' } } });
  });
});

describe('taking the request', () => {
  test('is marked before the field is cleared, and survives a reset', async () => {
    const ref = await bench.begin();
    const taking = () => bench.store.runs.taking('7', ref.run);
    expect(await taking()).toBe('not-taken');
    await bench.store.runs.markTaken(ref);
    expect(await taking()).toBe('marked');
    const again = await bench.reset(ref);
    expect(await taking()).toBe('marked');
    await bench.store.runs.markCleared(again);
    expect(await taking()).toBe('cleared');
    expect(await bench.store.runs.taking('7', 99)).toBe('not-taken');
  });
});

describe('what NetBox says of a device', () => {
  test('is refreshed, and never touches the state of a known device', async () => {
    await bench.store.devices.setState('7', { state: 'active', previousState: null, hold: null, because: 'installed' });
    const record = await bench.store.devices.register(deviceOf({ name: 'renamed', site: 'other' }), { state: 'planned', adopted: true });
    expect(record).toMatchObject({ name: 'renamed', site: 'other', state: 'active', adopted: false });
  });
  test('is left alone by the state: its status is what we wrote last', async () => {
    expect(await bench.store.devices.find('7')).toMatchObject({ netboxStatus: 'planned' });
    await bench.store.devices.setNetboxStatus('7', 'staged');
    await bench.declare({ status: 'failed' });
    expect(await bench.store.devices.find('7')).toMatchObject({ netboxStatus: 'staged' });
  });
});

describe('the state of a device', () => {
  test('is journalled when it moves, and has its own time', async () => {
    bench.pass(60);
    await bench.store.devices.setState('7', { state: 'active', previousState: 'planned', hold: null, because: 'installed', nextRequest: 'wipe' });
    expect(await bench.store.devices.find('7')).toMatchObject({ state: 'active', previousState: 'planned', stateSince: '2026-11-30T12:01:00.000Z', nextRequest: 'wipe' });
    bench.pass(60);
    await bench.store.devices.setState('7', { state: 'active', previousState: 'planned', hold: null, because: 'again' });
    expect(await bench.store.devices.find('7')).toMatchObject({ stateSince: '2026-11-30T12:01:00.000Z', nextRequest: 'wipe' });
    expect(await bench.journal()).toEqual(['planned → active: installed']);
  });
  test('of an open run, or of one that nobody settled, asks for a lifecycle', async () => {
    expect(await bench.store.devices.withOpenWork()).toEqual([]);
    const { run } = await open();
    expect(await bench.store.devices.withOpenWork()).toEqual(['7']);
    await bench.store.devices.setState('7', { state: 'provisioning', previousState: 'planned', hold: null, because: 'x' });
    await bench.store.runs.close('7', run, { end: 'done', failure: null, destroyed: false }, null);
    expect(await bench.store.devices.withOpenWork()).toEqual(['7']);
  });
  test('of a device that is not there is nothing', async () => {
    await expect(bench.store.devices.setState('99', { state: 'active', previousState: null, hold: null, because: 'x' })).resolves.toBeUndefined();
    expect(await bench.store.devices.find('99')).toBeNull();
  });
});
