/** B1: which devices are compared with NetBox next, and what counts as the same. */
import type { Device } from '../../src/contracts/device.js';
import { deviceOf, MAC, StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => { bench = await StoreBench.open(); });
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const metadata = { tags: [], interfaces: [{ name: 'eno1', mac: MAC, addresses: ['10.0.1.7/24'] }], primary: [], sshKeys: [], userData: null, network: null };

test('every device that has not ended has its turn, and then they begin anew', async () => {
  for (const id of ['8', '9', '10']) await bench.declare({ id, macs: [], addresses: [] });
  await bench.declare({ id: '11', macs: [], addresses: [] }, 'retired');
  const turns = [];
  for (let turn = 0; turn < 6; turn++) turns.push(await bench.store.devices.nextToCompare(2));
  expect(turns).toEqual([['10', '7'], ['8', '9'], [], ['10', '7'], ['8', '9'], []]);
});

test('a store without devices has none to compare', async () => {
  await bench.db.deleteFrom('device').execute();
  expect(await bench.store.devices.nextToCompare(2)).toEqual([]);
});

test.each<[string, Partial<Device>, boolean]>([
  ['with nothing changed', {}, true],
  ['touched, and the same in what is read', { lastUpdated: '2026-12-01T10:00:00.000000Z', etag: null, status: 'active', desiredAction: 'wipe' }, true],
  ['with another MAC', { macs: ['02:01:48:aa:bb:ff'] }, false],
  ['with one MAC more', { macs: [MAC, '02:01:48:aa:bb:ff'] }, false],
  ['without MAC', { macs: [] }, false],
  ['with another address', { addresses: ['10.0.1.8'] }, false],
  ['with another BMC port', { bmc: { type: 'amt', host: '10.0.0.7', port: 16_993 } }, false],
  ['renamed', { name: 'node-8' }, false],
  ['with other tags', { metadata: { ...metadata, tags: ['gpu'] } }, false],
])('a device %s is the one that was registered: %#', async (_what, change, same) => {
  await bench.declare({ metadata });
  expect(await bench.store.devices.isAsRegistered(deviceOf({ metadata, ...change }))).toBe(same);
});

test('a device that was never registered is not as it was', async () => {
  expect(await bench.store.devices.isAsRegistered(deviceOf({ id: '99' }))).toBe(false);
});
