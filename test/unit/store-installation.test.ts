/** A store and a Temporal that do not belong together: nothing is served, handed out or powered until a person adopts. */
import { MAC, StoreBench, UUID } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const WHY = 'Temporal belongs to installation b';
const trusted = async (deviceId = '7'): Promise<boolean> => (await bench.store.installation.distrust(deviceId)) === null;
const declareEight = () => bench.declare({ id: '8', name: 'node-8', macs: ['02:00:00:00:00:08'], addresses: [] });

describe('linking', () => {
  test('a store is not trusted before Temporal confirmed it, and its id is the first one', async () => {
    await bench.db.deleteFrom('installation').execute();
    expect([await bench.store.installation.read(), await trusted()]).toEqual([null, false]);
    await bench.store.installation.begin('a');
    await bench.store.installation.begin('b');
    expect(await bench.store.installation.read()).toEqual({ id: 'a', status: 'pending', why: null });
    expect(await trusted()).toBe(false);
    await expect(bench.begin()).rejects.toMatchObject({ code: 'installation_mismatch' });
    await bench.store.installation.confirm();
    expect([(await bench.store.installation.read())?.status, await trusted()]).toEqual(['confirmed', true]);
  });
  test('a mismatch is not confirmed away', async () => {
    await bench.store.installation.mismatch(WHY);
    await bench.store.installation.confirm();
    expect(await bench.store.installation.read()).toEqual({ id: 'installation-a', status: 'mismatch', why: WHY });
  });
});

describe('a mismatch', () => {
  test('voids permissions, tokens, codes and orders, and holds every device', async () => {
    await declareEight();
    const ref = await bench.begin();
    const { bootAttempt, token, session, installCode } = await bench.boot(ref);
    await bench.store.permissions.lease(ref, bootAttempt, 300);
    const taken = await bench.post(ref, bootAttempt);
    await bench.store.orderDesk.consume(session, taken.orderId);
    const offered = await bench.post(ref, bootAttempt, { title: 'second' });

    await bench.store.installation.mismatch(WHY);

    expect((await bench.store.boot.byMac(MAC))?.permission).toBeNull();
    expect(await bench.store.orderDesk.session(token)).toBeNull();
    expect(await bench.store.seeds.redeem({ code: installCode!, systemUuid: UUID, sender: '10.0.1.7' })).toEqual({ kind: 'unknown' });
    for (const { orderId } of [taken, offered]) expect(await bench.store.orders.result('7', orderId)).toMatchObject({ kind: 'cancelled' });
    expect(await bench.store.orderDesk.next(session)).toBeNull();
    await expect(bench.store.orderDesk.consume(session, offered.orderId)).rejects.toMatchObject({ code: 'order_closed' });
    await expect(bench.store.fence.enter(ref)).rejects.toMatchObject({ code: 'installation_mismatch', details: { why: WHY } });
    await expect(bench.store.runs.open('8', 'provision', { asked: { how: 'netbox' }, intake: null })).rejects.toMatchObject({ code: 'installation_mismatch' });
    for (const deviceId of ['7', '8']) {
      expect(await trusted(deviceId)).toBe(false);
      expect((await bench.store.devices.find(deviceId))?.hold).toMatchObject({ code: 'installation_mismatch', message: expect.stringContaining(WHY) });
      expect(await bench.journal(deviceId)).toContain(`held: ${WHY}`);
    }
  });
  test('found again changes nothing more', async () => {
    await bench.store.installation.mismatch(WHY);
    const before = await bench.journal();
    await bench.store.installation.mismatch('another reason');
    expect([await bench.journal(), (await bench.store.installation.read())?.why]).toEqual([before, WHY]);
  });
  test('keeps out a node that attests', async () => {
    await bench.store.installation.mismatch(WHY);
    expect(await bench.store.attestation.findNode(MAC)).toMatchObject({ admitted: false, attempt: null });
  });
  test('lets a run be closed all the same: its end is written, nothing is armed', async () => {
    const { run } = await bench.begin();
    await bench.store.installation.mismatch(WHY);
    expect(await bench.store.runs.close('7', run, { end: 'failed', failure: null, destroyed: false }, null)).toMatchObject({ end: 'failed' });
  });
});

describe('adopting', () => {
  beforeEach(async () => {
    await declareEight();
    await bench.store.installation.mismatch(WHY);
  });
  const adopt = async (deviceId: string): Promise<void> => {
    await bench.store.installation.relink('installation-b');
    await bench.store.installation.adopt(deviceId, 'ann');
  };
  test('releases one device, with the name of the person, and no other', async () => {
    await adopt('7');
    expect([await trusted('7'), await trusted('8')]).toEqual([true, false]);
    expect([(await bench.store.devices.find('7'))?.hold, (await bench.store.devices.find('8'))?.hold]).toEqual([null, expect.objectContaining({ code: 'installation_mismatch' })]);
    expect((await bench.store.nodes.journal('7', 1))[0]).toMatchObject({ by: 'ann', text: expect.stringContaining('adopted') });
    expect(await bench.store.installation.read()).toMatchObject({ id: 'installation-b', status: 'confirmed' });
  });
  test('one after the other releases both', async () => {
    await adopt('7');
    await adopt('8');
    expect([await trusted('7'), await trusted('8')]).toEqual([true, true]);
  });
  test('without a link between store and Temporal releases nothing', async () => {
    await bench.store.installation.adopt('7', 'ann');
    expect(await trusted('7')).toBe(false);
  });
  test('does not outlast the next mismatch', async () => {
    await adopt('7');
    await bench.store.installation.mismatch('again');
    expect(await trusted('7')).toBe(false);
    await adopt('8');
    expect([await trusted('7'), await trusted('8')]).toEqual([false, true]);
  });
  test('a device first seen during a mismatch is held too, until it is adopted', async () => {
    await bench.declare({ id: '9', name: 'node-9', macs: ['02:00:00:00:00:09'], addresses: [] });
    expect(await trusted('9')).toBe(false);
    await adopt('7');
    expect(await trusted('9')).toBe(false);
    await adopt('9');
    expect(await trusted('9')).toBe(true);
  });
  test('a device first seen afterwards is trusted', async () => {
    await adopt('7');
    await bench.declare({ id: '9', name: 'node-9', macs: ['02:00:00:00:00:09'], addresses: [] });
    expect(await trusted('9')).toBe(true);
  });
});

test('one device of which Temporal knows more than the store is held alone, and adopted alone', async () => {
  await declareEight();
  await bench.store.installation.distrustDevice('7', 'Temporal knows node/7/run/4');
  expect([await trusted('7'), await trusted('8')]).toEqual([false, true]);
  expect((await bench.store.devices.find('7'))?.hold).toMatchObject({ code: 'installation_mismatch' });
  await expect(bench.begin()).rejects.toMatchObject({ code: 'installation_mismatch' });
  await bench.store.installation.adopt('7', 'ann');
  expect(await trusted('7')).toBe(true);
});

test('a device that the store does not know is not trusted', async () => {
  expect(await bench.store.installation.distrust('99')).toBe('the store does not know the device');
});
