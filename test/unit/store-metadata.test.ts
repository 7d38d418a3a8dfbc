import type { RunPlan } from '../../src/contracts/plan.js';
import type { FenceRef } from '../../src/contracts/store.js';
import { deviceOf, MAC, StoreBench, UUID } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => {
  bench = await StoreBench.open();
});
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const TOLD = {
  tags: ['gpu'], interfaces: [{ name: 'eth0', mac: MAC, addresses: ['10.0.1.7/24'] }], primary: ['10.0.1.7'], sshKeys: ['ssh-ed25519 AAAA device'], userData: null,
  network: { gateways: ['10.0.1.1'], nameservers: [], search: [] },
};
const plan = (run: number, extra: Partial<RunPlan> = {}): RunPlan => ({
  deviceId: '7', nodeName: 'node-7', run, kind: 'provision', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: true, netboots: true, nodeClass: 'worker', payload: 'cloud-init-nocloud',
  template: 'install', image: null, diskRule: {}, rootDisk: null, wipeDisks: [], actions: [], seed: null, allowUnproven: false, confirmBy: 'none', ...extra,
});
/** A run with its plan pinned. */
async function planned(extra: Partial<RunPlan> = {}): Promise<FenceRef> {
  const ref = await bench.begin();
  await bench.store.runs.pinPlan(ref, plan(ref.run, extra));
  return ref;
}
const close = (ref: FenceRef, end: 'done' | 'failed'): Promise<unknown> => bench.store.runs.close('7', ref.run, { end, failure: null, destroyed: false } as never, ref);
const idOf = async (): Promise<string | null> => {
  const found = await bench.store.metadata.byAddress('10.0.1.7');
  return found.kind === 'found' ? found.subject.instanceId : found.kind;
};

test('a device is found by its address with what NetBox says of it, before any run', async () => {
  await bench.declare({ metadata: TOLD });
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toMatchObject({
    kind: 'found', subject: { deviceId: '7', nodeName: 'node-7', instanceId: `${UUID}-0`, site: 'lab', nodeClass: 'talos', payload: '', ...TOLD, network: { interfaces: TOLD.interfaces, statement: TOLD.network }, imageSha256: null },
  });
});

test('a device that was stored before its metadata were read is known by what there was', async () => {
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toMatchObject({ kind: 'found', subject: { addresses: ['10.0.1.7'], macs: [MAC], interfaces: [], tags: [], sshKeys: [], network: null } });
});

test('an address of nobody is unknown, one of two devices names both, and that of a retired device is free (M1)', async () => {
  expect(await bench.store.metadata.byAddress('10.0.1.99')).toEqual({ kind: 'unknown' });
  await bench.store.devices.register(deviceOf({ id: '8', name: 'node-8', systemUuid: null, macs: ['02:01:48:aa:bb:08'] }), { state: 'active', adopted: true });
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toEqual({ kind: 'ambiguous', devices: ['node-7', 'node-8'] });
  await bench.store.devices.setState('7', { state: 'retired', previousState: null, hold: null, because: 'gone' } as never);
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toMatchObject({ kind: 'found', subject: { deviceId: '8', instanceId: '8-0' } });
});

test("the class's keys and user-data come from the plan, and the device's own stand before them", async () => {
  const ref = await planned({ sshKeys: ['ssh-ed25519 AAAA class'], userData: 'secret:class' });
  await bench.boot(ref);
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toMatchObject({ subject: { sshKeys: ['ssh-ed25519 AAAA class'], userData: 'secret:class', nodeClass: 'worker' } });
  await bench.declare({ metadata: { ...TOLD, userData: 'secret:own' } });
  expect(await bench.store.metadata.byAddress('10.0.1.7')).toMatchObject({ subject: { sshKeys: ['ssh-ed25519 AAAA class', 'ssh-ed25519 AAAA device'], userData: 'secret:own' } });
});

describe('the instance-id (M3)', () => {
  test('is that of the run that installs, and stays when the run is done', async () => {
    const ref = await planned();
    expect(await idOf()).toBe(`${UUID}-1`);
    await bench.boot(ref);
    expect(await idOf()).toBe(`${UUID}-1`);
    await close(ref, 'done');
    expect(await idOf()).toBe(`${UUID}-1`);
  });

  test('changes with a reprovision once its boot has attested, not while the old system may still run', async () => {
    await close(await planned(), 'done');
    const again = await planned();
    expect(await idOf()).toBe(`${UUID}-1`);
    await bench.boot(again);
    expect(await idOf()).toBe(`${UUID}-2`);
  });

  test('stays that of the installed system when a later run failed before it touched the node', async () => {
    await close(await planned(), 'done');
    const failed = await planned();
    await bench.boot(failed);
    await close(failed, 'failed');
    expect(await idOf()).toBe(`${UUID}-1`);
  });

  test('of a session is that of its own run', async () => {
    await close(await planned(), 'done');
    const again = await planned();
    expect(await bench.store.metadata.byDevice('7', again.run)).toMatchObject({ instanceId: `${UUID}-2` });
    expect(await bench.store.metadata.byDevice('7', 99)).toBeNull();
    expect(await bench.store.metadata.byDevice('99', null)).toBeNull();
  });
});

test('what a seed is rendered from is the same reading', async () => {
  const ref = await planned({ confirmBy: 'phone-home', seed: 'site' });
  expect(await bench.store.seeds.subject('7', ref.run)).toEqual(await bench.store.metadata.byDevice('7', ref.run));
  await expect(bench.store.seeds.subject('7', 99)).rejects.toMatchObject({ code: 'run_not_found' });
});

test('a store that cannot be read says so', async () => {
  const other = await StoreBench.open();
  await other.close();
  await expect(other.store.metadata.byAddress('10.0.1.7')).rejects.toMatchObject({ code: 'store_unavailable' });
});
