/** What the lifecycle writes to NetBox, and what it leaves to people: on a real store, with a NetBox of one device. */
import { createLifecycleActivities } from '../../src/activities/lifecycle.js';
import { createNetboxActivities, type NetboxActivities } from '../../src/activities/netbox.js';
import type { Device } from '../../src/contracts/device.js';
import type { NetboxClient } from '../../src/contracts/netbox.js';
import { StoreBench, deviceOf } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

/** @param meanwhile what somebody changes between the first read and the first write */
function netboxOf(device: Partial<Device>, meanwhile: Partial<Device> | null = null): { now: () => Device; writes: string[]; activities: NetboxActivities; letNetboxStand: ReturnType<typeof createLifecycleActivities>['letNetboxStand'] } {
  let current = deviceOf(device);
  let between = meanwhile;
  const writes: string[] = [];
  const netbox = {
    readDevice: async () => current,
    writeDevice: async ({ etag }, { status, fields, message }) => {
      if (between) current = { ...current, ...between, etag: `${current.etag}+` };
      between = null;
      if (etag !== current.etag) return { kind: 'conflict' };
      current = { ...current, ...(status && { status }), ...(fields && 'desired_action' in fields && { desiredAction: null }), etag: `${current.etag}+` };
      writes.push(message);
      return { kind: 'written', device: current };
    },
  } as Pick<NetboxClient, 'readDevice' | 'writeDevice'> as NetboxClient;
  const { letNetboxStand } = createLifecycleActivities({ stores: bench.store, netbox, temporal: {} as never, trySeconds: 30, linkInstallation: async (ours) => ours });
  return { now: () => current, writes, letNetboxStand, activities: createNetboxActivities({ netbox, stores: bench.store, temporal: {} as never, classes: {} as never, lifecycleUrl: () => '' }) };
}
const ENDED = { run: 3, kind: 'reprovision' } as const;
const active = (ended: typeof ENDED | null, insist = false) => ({ deviceId: '7', state: 'active', status: 'active', insist, ended }) as const;
const journal = async (): Promise<string[]> => (await bench.store.nodes.journal('7', 10)).map(({ text }) => text);

describe("A2: a run's end and the request that was meant for it", () => {
  beforeEach(() => bench.store.devices.setNetboxStatus('7', 'staged'));

  test('are one write, which the journal tells', async () => {
    const { activities, now, writes } = netboxOf({ status: 'staged', desiredAction: 'reprovision' });
    expect(await activities.writeStatus(active(ENDED))).toEqual({ kind: 'written' });
    expect([now().status, now().desiredAction]).toEqual(['active', null]);
    expect(writes).toEqual(['metalflow: active; run 3 took the request reprovision']);
    expect(await journal()).toContain('took the request reprovision at its end: NetBox still asked for it');
  });
  test.each([['another request', 'wipe', ENDED], ['a request, when no run has ended', 'reprovision', null]] as const)('%s is left alone', async (_what, desiredAction, ended) => {
    const { activities, now, writes } = netboxOf({ status: 'staged', desiredAction });
    await activities.writeStatus(active(ended));
    expect([now().desiredAction, writes]).toEqual([desiredAction, ['metalflow: active']]);
  });
  test('a request that comes between read and write is taken too: the run was not over then', async () => {
    const { activities, now } = netboxOf({ status: 'staged' }, { desiredAction: 'reprovision' });
    await activities.writeStatus(active(ENDED));
    expect([now().status, now().desiredAction]).toEqual(['active', null]);
  });
  test('where a person changed the status, the request is taken and the status is theirs', async () => {
    const { activities, now } = netboxOf({ status: 'offline', desiredAction: 'reprovision' });
    expect(await activities.writeStatus(active(ENDED))).toMatchObject({ kind: 'conflict', failure: { code: 'netbox_conflict' } });
    expect([now().status, now().desiredAction]).toEqual(['offline', null]);
  });
});

describe('B8: a status of NetBox that is to stand', () => {
  const stand = async (status: string) => {
    await bench.store.devices.setState('7', { state: 'failed', previousState: 'provisioning', hold: null, because: 'test' });
    await bench.store.devices.setNetboxStatus('7', 'failed');
    const { letNetboxStand, activities, now } = netboxOf({ status });
    return { record: await letNetboxStand({ deviceId: '7', because: 'adopt: it is off', by: 'anna' }), activities, now };
  };
  test.each([['planned', 'planned', false], ['inventory', 'available', false], ['active', 'active', true]] as const)('%s makes the node %s', async (status, state, adopted) => {
    expect((await stand(status)).record).toMatchObject({ state, netboxStatus: status, adopted, previousState: null });
  });
  test.each(['offline', 'decommissioning', 'staged', 'on-loan'])('%s says nothing of what the node is: it stands until the next state is written', async (status) => {
    const { record, activities, now } = await stand(status);
    expect(record).toMatchObject({ state: 'failed', netboxStatus: null });
    await activities.writeStatus({ deviceId: '7', state: 'failed', status: null, insist: false });
    expect(now().status).toBe(status);
    expect(await activities.writeStatus(active(null))).toEqual({ kind: 'written' });
    expect(now().status).toBe('active');
  });
  test('is told in the journal, with the name of who said so', async () => {
    await stand('offline');
    expect((await bench.store.nodes.journal('7', 10))[0]).toMatchObject({ kind: 'verb', by: 'anna', text: 'adopt: it is off (offline stands)' });
  });
  test('is not what a node with an open run is', async () => {
    await bench.begin();
    expect((await stand('active')).record).toMatchObject({ state: 'failed', netboxStatus: null });
  });
});
