/** Devices of NetBox that metalflow cannot begin with: what people are told of them, and how often. Against NetBox's stand-in and a store. */
import { createNetboxActivities } from '../../src/activities/netbox.js';
import { createNetboxClient } from '../../src/netbox/client.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { runActivity } from '../support/activity-env.js';
import { StoreBench } from '../support/store-bench.js';

const TOKEN = 'nbt_testtoken001.0123456789012345678901234567890123456789';
const log = silentLogger();
let bench: StoreBench;
let netbox: NetboxStandIn;
let client: ReturnType<typeof createNetboxClient>;
beforeAll(async () => {
  bench = await StoreBench.open();
  netbox = await startNetboxStandIn({ token: TOKEN, log });
  client = createNetboxClient({ url: netbox.url, token: TOKEN, timeoutMs: 100_000, log });
});
beforeEach(() => bench.clean());
afterAll(async () => {
  await client?.close();
  await netbox?.close();
  await bench?.close();
});

/** What a lifecycle does of it: looks, and tells when it is refused. */
async function lookAndTell(deviceId: string, afterLook: () => void = () => undefined): Promise<string> {
  const { lookAtDevice, tellRefusal } = createNetboxActivities({ netbox: client, stores: bench.store, classes: { find: async () => null, list: async () => [] } as never, temporal: { look: async () => ({ kind: 'absent' }) }, lifecycleUrl: () => '' });
  const caller = { workflowId: `node/${deviceId}`, temporalRunId: 'r' };
  const { kind } = await runActivity(caller, lookAtDevice, { deviceId });
  afterLook();
  if (kind === 'invalid') await runActivity(caller, tellRefusal, { deviceId });
  return kind;
}
const told = (deviceId: string): string[] => netbox.journal(deviceId).map(({ comments }) => comments);
const refused = async (): Promise<string[]> => (await bench.store.nodes.refused()).map(({ deviceId, name, failure }) => `${deviceId} ${name}: ${failure.message}`);
const declare = (customFields: Record<string, unknown>, more: { status?: string; interfaces?: { name: string; mac: string }[] } = {}): string => netbox.addDevice({ name: 'rack4-node7', customFields, ...more });
/** More MACs than a device of metalflow has: a switch. */
const PORTS = Array.from({ length: 70 }, (_, n) => ({ name: `swp${n}`, mac: `02:aa:00:00:00:${n.toString(16).padStart(2, '0')}` }));
const MISTAKE = { node_class: 'talos', desired_action: 'provision', system_uuid: 'not-a-uuid' };

test('B3: a new device with a mistake is named in NetBox with the field and what to do, once, and is no node', async () => {
  const id = declare(MISTAKE);
  for (let n = 0; n < 3; n++) expect(await lookAndTell(id)).toBe('invalid');
  expect(told(id)).toEqual(['NetBox field system_uuid: holds not-a-uuid, which is no UUID. What to do: fix NetBox; it is read again, and goes on by itself']);
  expect(await refused()).toEqual([`${id} rack4-node7: NetBox field system_uuid: holds not-a-uuid, which is no UUID`]);
  expect(await bench.store.nodes.find(id)).toBeNull();
});

test('B3: another mistake is told too, and what was mended is forgotten', async () => {
  const id = declare(MISTAKE);
  await lookAndTell(id);
  netbox.patchDevice(id, { custom_fields: { system_uuid: 'neither-is-this' } });
  await lookAndTell(id);
  expect(told(id)).toEqual([expect.stringContaining('not-a-uuid'), expect.stringContaining('neither-is-this')]);
  netbox.patchDevice(id, { custom_fields: { system_uuid: null } });
  expect([await lookAndTell(id), await refused()]).toEqual(['found', []]);
  expect(await bench.store.nodes.find(id)).toMatchObject({ state: 'planned' });
});

test('B3: what NetBox could not be told is told the next time', async () => {
  const id = declare(MISTAKE);
  await expect(lookAndTell(id, () => { netbox.down = true; })).rejects.toMatchObject({ code: 'netbox_unreachable' });
  netbox.down = false;
  expect([told(id), (await bench.store.refused.find(id))!.isTold]).toEqual([[], false]);
  await lookAndTell(id);
  expect([told(id).length, (await bench.store.refused.find(id))!.isTold]).toEqual([1, true]);
});

test.each<[string, Record<string, unknown>, string, string]>([
  ['asks for nothing of ours', {}, 'planned', 'not-ours'],
  ['has a class, in a status that is no beginning', { node_class: 'talos' }, 'offline', 'not-ours'],
  ['has a class, and is planned', { node_class: 'talos' }, 'planned', 'invalid'],
  ['asks for a run, in whatever status', { desired_action: 'wipe' }, 'offline', 'invalid'],
])('B3: a device that cannot be read and %s', async (_what, customFields, status, kind) => {
  const id = declare(customFields, { status, interfaces: PORTS });
  expect(await lookAndTell(id)).toBe(kind);
  expect(told(id)).toHaveLength(kind === 'invalid' ? 1 : 0);
});

test('B2: a request on a retired device is answered once in NetBox, however many lifecycles look at it; asked anew, it is answered anew', async () => {
  const id = declare({ node_class: 'talos' });
  await lookAndTell(id);
  await bench.store.devices.setState(id, { state: 'retired', previousState: null, hold: null, because: 'a test' });
  const ask = (action: string | null): void => netbox.patchDevice(id, { status: 'offline', custom_fields: { desired_action: action } });
  ask('provision');
  for (let n = 0; n < 3; n++) expect(await lookAndTell(id)).toBe('invalid');
  expect(told(id)).toEqual([expect.stringMatching(/^NetBox field status: is offline, .*set planned, inventory, active or failed/)]);
  expect(await bench.journal(id)).toContainEqual(expect.stringContaining('NetBox field status: is offline'));
  ask(null);
  expect([await lookAndTell(id), await refused()]).toEqual(['not-ours', []]);
  ask('provision');
  await lookAndTell(id);
  expect(told(id)).toHaveLength(2);
});

test('B1: a refused device is compared in its turn too, so that one that was deleted is forgotten', async () => {
  const id = declare(MISTAKE);
  await lookAndTell(id);
  expect(await bench.store.devices.nextToCompare(50)).toEqual(['7', id].sort());
  netbox.deleteDevice(id);
  expect([await lookAndTell(id), await refused()]).toEqual(['gone', []]);
});
