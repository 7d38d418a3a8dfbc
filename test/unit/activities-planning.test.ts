/** What a run pins when it starts, and the orders that follow from plan and inventory. */
import { createRunPlanner } from '../../src/activities/run-planner.js';
import { createPlanningActivities, planFor, type PlanningDeps } from '../../src/activities/planning.js';
import { pinActions } from '../../src/activities/orders.js';
import type { BmcAddress, Device } from '../../src/contracts/device.js';
import type { TemplateFacts } from '../../src/contracts/images.js';
import { NodeClass } from '../../src/contracts/node-class.js';
import { RunPlan, type PlannedAction } from '../../src/contracts/plan.js';
import type { Disk } from '../../src/domain/disks.js';
import { failure, MetalflowError } from '../../src/domain/errors.js';
import type { DeviceRecord } from '../../src/contracts/store.js';
import type { RunKind } from '../../src/domain/runs.js';
import { runActivity } from '../support/activity-env.js';
import { deviceOf, UUID } from '../support/store-bench.js';

const SHA = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
const classOf = (extra: Record<string, unknown> = {}): NodeClass =>
  NodeClass.parse({ name: 'talos', payload: 'talos', image: { url: 'asset:images/talos.raw.gz', sha256: SHA, sizeBytes: 800, compression: 'gzip', unpackedBytes: 1000 }, rootDisk: { minBytes: 500 }, ...extra });

const rendered: { name: string; facts: TemplateFacts }[] = [];
const ACTIONS: PlannedAction[] = [{ title: 'an action of the template', name: 'reboot', timeoutSeconds: 60 }];
const deps = (nodeClass: NodeClass | null): PlanningDeps => ({
  stores: null as never,
  netbox: null as never,
  classes: { find: async (name) => (name === nodeClass?.name ? nodeClass : null), lastProblem: () => null, list: async () => [] },
  templates: { render: async (name, facts) => (rendered.push({ name, facts }), ACTIONS) },
  images: { urlFor: (source) => `http://10.0.0.1:7080/${source.replace('asset:', '')}` },
});
const plan = (kind: RunKind, device: Partial<Device> = {}, nodeClass: NodeClass | null = classOf()): Promise<RunPlan> => planFor(deviceOf(device), kind, 3, deps(nodeClass));
beforeEach(() => void (rendered.length = 0));

describe('a plan', () => {
  test('of a provision pins class, image, digest, disks and template', async () => {
    const pinned = await plan('provision', { rootDisk: 'S1' }, classOf({ allowUnproven: true, seed: 'site-seed' }));
    expect(pinned).toEqual({
      deviceId: '7', nodeName: 'node-7', run: 3, kind: 'provision', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: false, netboots: true, nodeClass: 'talos', payload: 'talos', template: 'install',
      image: { source: 'asset:images/talos.raw.gz', url: 'http://10.0.0.1:7080/images/talos.raw.gz', sha256: SHA, sizeBytes: 800, compression: 'gzip', unpackedBytes: 1000 },
      diskRule: { minBytes: 500 }, rootDisk: 'S1', wipeDisks: ['S1'], actions: ACTIONS, seed: 'site-seed', allowUnproven: true, confirmBy: 'seed-fetched',
    });
    expect(RunPlan.parse(pinned)).toEqual(pinned);
    expect(rendered).toEqual([{ name: 'install', facts: { run: { kind: 'provision', number: 3, wipes: false }, device: { id: '7', name: 'node-7', site: 'lab' }, class: { name: 'talos', payload: 'talos' } } }]);
  });
  test('of an image that is not packed takes as many bytes as were fetched', async () => {
    const image = { url: 'https://example.org/a.raw', sha256: SHA, sizeBytes: 800, contentDigest: SHA };
    expect((await plan('provision', {}, classOf({ image }))).image).toMatchObject({ compression: 'none', unpackedBytes: 800, contentDigest: SHA });
  });

  test.each<[RunKind, retireWipes: boolean, wipes: boolean, netboots: boolean, template: string | null, image: boolean]>([
    ['provision', true, false, true, 'install', true],
    ['reprovision', false, true, true, 'install', true],
    ['wipe', false, true, true, 'wipe', false],
    ['retire', false, false, false, null, false],
    ['retire', true, true, true, 'wipe', false],
  ])('of a %s (the class wipes when retired: %s): wipes %s, netboots %s, template %s, image %s', async (kind, retireWipes, wipes, netboots, template, image) => {
    const pinned = await plan(kind, {}, classOf({ retireWipes }));
    expect([pinned.wipes, pinned.netboots, pinned.template, pinned.image !== null]).toEqual([wipes, netboots, template, image]);
    expect(pinned.actions).toEqual(template ? ACTIONS : []);
  });

  test.each<[RunKind, string, boolean, RunPlan['confirmBy']]>([
    ['provision', 'talos', false, 'seed-fetched'],
    ['reprovision', 'nixos-image', false, 'seed-fetched'],
    ['provision', 'alpine-image', true, 'seed-fetched'],
    ['provision', 'cloud-init-nocloud', false, 'seed-written'],
    ['provision', 'cloud-init-nocloud', true, 'phone-home'],
    ['wipe', 'talos', false, 'none'],
    ['retire', 'talos', false, 'power-off'],
  ])('of a %s of %s (phoneHome: %s) is confirmed by %#', async (kind, payload, phoneHome, confirmBy) => {
    expect((await plan(kind, {}, classOf({ payload, phoneHome }))).confirmBy).toBe(confirmBy);
  });

  test.each<[string, RunKind, Partial<Device>]>([
    ['a wipe without a class', 'wipe', { nodeClass: null }],
    ['a retirement without a class, MACs, UUID and disks', 'retire', { nodeClass: null, macs: [], systemUuid: null, wipeDisks: [] }],
    ['a provision without disks to wipe: it wipes none', 'provision', { wipeDisks: [] }],
  ])('of %s is made', async (_what, kind, device) => {
    await expect(plan(kind, device)).resolves.toMatchObject({ kind });
  });

  test.each<[string, RunKind, Partial<Device>, NodeClass | null, string, string]>([
    ['no BMC', 'retire', { bmc: null }, classOf(), 'device_invalid', 'oob_ip'],
    ['no class', 'provision', { nodeClass: null }, classOf(), 'device_invalid', 'node_class'],
    ['no class', 'reprovision', { nodeClass: null }, classOf(), 'device_invalid', 'node_class'],
    ['a class that is not there', 'provision', {}, null, 'class_unknown', 'talos'],
    ['a class that is not there, which cannot say whether a retirement wipes', 'retire', {}, null, 'class_unknown', 'talos'],
    ['no MAC', 'provision', { macs: [] }, classOf(), 'device_invalid', 'interfaces'],
    ['no MAC', 'wipe', { macs: [] }, classOf(), 'device_invalid', 'interfaces'],
    ['no UUID', 'provision', { systemUuid: null }, classOf(), 'device_invalid', 'system_uuid'],
    ['no UUID', 'retire', { systemUuid: null }, classOf({ retireWipes: true }), 'device_invalid', 'system_uuid'],
    ['no disk to wipe', 'reprovision', { wipeDisks: [] }, classOf(), 'device_invalid', 'wipe_disks'],
    ['no disk to wipe', 'wipe', { wipeDisks: [] }, classOf(), 'device_invalid', 'wipe_disks'],
    ['no disk to wipe', 'retire', { wipeDisks: [] }, classOf({ retireWipes: true }), 'device_invalid', 'wipe_disks'],
  ])('%s: %s is refused', async (_what, kind, device, nodeClass, code, says) => {
    const refused = plan(kind, device, nodeClass);
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining(says) });
    expect(rendered).toEqual([]);
  });
});

describe('planning a run', () => {
  const caller = { workflowId: 'node/7/run/3', temporalRunId: 'temporal-run-1' };
  const planRun = (device: Device | null | Error, pinned: RunPlan[] = []) => {
    const activities = createPlanningActivities({
      ...deps(classOf()),
      netbox: { readDevice: async () => { if (device instanceof Error) throw device; return device; } } as never,
      stores: { fence: { enter: async () => 'held' }, runs: { pinPlan: async (_ref: unknown, one: RunPlan) => void pinned.push(one) } } as never,
    });
    return runActivity(caller, activities.planRun, { deviceId: '7', run: 3, kind: 'provision' as const });
  };
  test('pins what it planned', async () => {
    const pinned: RunPlan[] = [];
    const planned = await planRun(deviceOf(), pinned);
    expect(planned).toMatchObject({ kind: 'planned', plan: { kind: 'provision' } });
    expect(pinned).toEqual([planned.kind === 'planned' && planned.plan]);
  });
  test('refuses what cannot be planned, in the words of the table, and pins nothing', async () => {
    const pinned: RunPlan[] = [];
    expect(await planRun(deviceOf({ macs: [] }), pinned)).toMatchObject({ kind: 'refused', failure: { code: 'device_invalid' } });
    expect(await planRun(null, pinned)).toMatchObject({ kind: 'refused', failure: { code: 'device_not_found' } });
    expect(pinned).toEqual([]);
  });
  test('is tried again when NetBox is away', async () => {
    await expect(planRun(new MetalflowError('netbox_unreachable', { why: 'x' }))).rejects.toMatchObject({ code: 'netbox_unreachable' });
  });
  describe('whose machine a person may have named anew', () => {
    const pinOf = ({ bmc, systemUuid }: Device): { bmc: BmcAddress; systemUuid: string | null } => ({ bmc: bmc!, systemUuid });
    const renew = async (device: Device | null | MetalflowError, kind: RunKind = 'provision') => {
      const pinned: RunPlan[] = [];
      const said: string[] = [];
      const before = await plan(kind);
      const { renewPin } = createPlanningActivities({
        ...deps(classOf()),
        netbox: { readDevice: async () => { if (device instanceof Error) throw device; return device; } } as never,
        stores: { fence: { enter: async () => 'held' }, runs: { plan: async () => before, pinPlan: async (_ref: unknown, one: RunPlan) => void pinned.push(one) }, devices: { journal: async (_id: string, _run: number, _kind: string, text: string) => void said.push(text) } } as never,
      });
      return { now: await runActivity(caller, renewPin, { deviceId: '7', run: 3, ...pinOf(deviceOf()) }), pinned, said, before };
    };
    const OTHER_UUID = UUID.replace('4c4c', '6e6e');
    test.each<[string, Partial<Device>]>([
      ['another address', { bmc: { type: 'amt', host: '10.0.0.99' } }],
      ['another certificate', { bmc: { type: 'amt', host: '10.0.0.7', fingerprint: SHA } }],
      ['another UUID', { systemUuid: OTHER_UUID }],
    ])('%s is pinned and journalled, and nothing else of what NetBox says by now', async (_what, change) => {
      const device = deviceOf({ ...change, wipeDisks: ['S2'], nodeClass: 'other', rootDisk: 'S9' });
      const { now, pinned, said, before } = await renew(device);
      expect(now).toEqual({ kind: 'renewed', ...pinOf(device) });
      expect(pinned).toEqual([{ ...before, ...pinOf(device) }]);
      expect(said).toEqual([expect.stringMatching(/names the machine anew.*before/)]);
    });
    test.each<[string, Device | null]>([['the same', deviceOf({ wipeDisks: ['S2'] })], ['no device', null]])('%s: nothing is pinned', async (_what, device) => {
      expect(await renew(device)).toMatchObject({ now: { kind: 'as-before' }, pinned: [], said: [] });
    });
    test('NetBox is away: the run goes on with what was compared, and the journal says so', async () => {
      expect(await renew(new MetalflowError('netbox_unreachable', { why: 'refused' }))).toMatchObject({ now: { kind: 'as-before' }, pinned: [], said: [expect.stringContaining('refused')] });
    });
    test.each<[string, Device | MetalflowError, RunKind, string]>([
      ['no BMC', deviceOf({ bmc: null }), 'retire', 'oob_ip'],
      ['no UUID to hold an attestation against', deviceOf({ systemUuid: null }), 'provision', 'system_uuid'],
      ['a mistake', new MetalflowError('device_invalid', { field: 'bmc_type', what: 'is ilo' }), 'provision', 'bmc_type'],
    ])('%s is refused, and nothing is pinned', async (_what, device, kind, says) => {
      expect(await renew(device, kind)).toMatchObject({ now: { kind: 'refused', failure: { code: 'device_invalid', message: expect.stringContaining(says) } }, pinned: [] });
    });
  });
});

describe('the plan of a run, shown to a person,', () => {
  const NOW = { state: 'available', hold: null, openRun: null } as Partial<DeviceRecord>;
  const show = (kind: RunKind, device: Partial<Device> | null = {}, record: Partial<DeviceRecord> | null = NOW) =>
    createRunPlanner({
      ...deps(classOf()),
      netbox: { readDevice: async () => device && deviceOf(device) } as never,
      stores: { runs: { nextNumber: async () => 3 }, devices: { find: async () => record as DeviceRecord | null } },
    }).plan('7', kind);

  test.each<[RunKind, Partial<Device>, destroys: RegExp[], notes: RegExp[]]>([
    ['reprovision', {}, [/^all of disk S1$/, /the one disk that fits .*written over/], [/writes asset:images.*the one disk that fits/]],
    ['provision', { rootDisk: 'S1', bmc: { type: 'manual', host: '' } }, [/^what disk S1 holds: .*written over/], [/to disk S1/, /a person has to power the node/]],
    ['provision', { rootDisk: 'S9' }, [/disk S9/], [/to disk S9/, /would fail .*disk_not_listed.* disk S9 is not in wipe_disks/]],
    ['provision', { wipeDisks: [] }, [/the one disk/], [/writes/, /would fail .*disk_not_listed.*wipe_disks is empty/]],
    ['wipe', {}, [/^all of disk S1$/], []],
    ['retire', {}, [], []],
  ])('B7: of a %s (%o) says what it would do, and what it would destroy', async (kind, device, destroys, notes) => {
    const shown = await show(kind, device, { ...NOW, state: kind === 'provision' ? 'planned' : 'active' });
    expect(shown.plan.run).toBe(3);
    expect([shown.destroys, shown.notes]).toEqual([destroys, notes].map((lines) => lines.map((line) => expect.stringMatching(line))));
    expect(shown.phases[0]).toBe('planning');
  });
  test.each<[string, RunKind, Partial<DeviceRecord> | null, Partial<Device>, string]>([
    ['a node that is available', 'provision', NOW, {}, 'at once'],
    ['a device that was never seen', 'provision', null, { status: 'planned' }, 'at once'],
    ['a retired device that is declared again', 'provision', { ...NOW, state: 'retired' }, { status: 'planned' }, 'at once'],
    ['a node that is held', 'provision', { ...NOW, state: 'held' }, {}, 'later: the node is held'],
    ['an idle node with a hold beside its state', 'provision', { ...NOW, hold: failure('held_by_person') }, {}, 'later: the node is held'],
    ['a node with another run', 'wipe', { ...NOW, state: 'provisioning', openRun: { run: 1, kind: 'provision', workflowId: 'w' } }, {}, 'later: a provision run is open'],
    ['a node with a run', 'retire', { ...NOW, state: 'provisioning', openRun: { run: 1, kind: 'provision', workflowId: 'w' } }, {}, 'once the open run has stopped at its next safe point'],
  ])('B7: of %s (%s) says when it would begin', async (_what, kind, record, device, begins) => {
    expect((await show(kind, device, record)).begins).toBe(begins);
  });
  test.each<[string, RunKind, Partial<DeviceRecord> | null, Partial<Device>, string, RegExp]>([
    ['an active node', 'provision', { ...NOW, state: 'active' }, {}, 'request_refused', /ask for reprovision/],
    ['a planned node', 'wipe', { ...NOW, state: 'planned' }, {}, 'request_refused', /nothing to wipe/],
    ['a retired device', 'provision', { ...NOW, state: 'retired' }, { status: 'offline' }, 'device_invalid', /status.*is offline/],
  ])('B7: of %s (%s) is no plan, but why it would not begin', async (_what, kind, record, device, code, says) => {
    await expect(show(kind, device, record)).rejects.toMatchObject({ code, message: expect.stringMatching(says) });
  });
  test('of a device that NetBox does not have is refused', async () => {
    await expect(show('wipe', null)).rejects.toMatchObject({ code: 'device_not_found' });
  });
});

describe('pinning the disks', () => {
  const disk = (serial: string, extra: Partial<Disk> = {}): Disk => ({ name: 'sda', serial, model: 'EVO', sizeBytes: 1000, bus: 'nvme', ...extra });
  const step = (name: PlannedAction['name']): PlannedAction => ({ title: `do ${name}`, name, timeoutSeconds: 60 });
  const IMAGE = { source: 'asset:a', url: 'http://10.0.0.1/a', sha256: SHA, sizeBytes: 800, compression: 'gzip' as const, unpackedBytes: 1000 };
  const planOf = (extra: Partial<RunPlan> = {}): RunPlan => ({
    deviceId: '7', nodeName: 'node-7', run: 3, kind: 'reprovision', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: true, netboots: true, nodeClass: 'talos', payload: 'talos', template: 'install',
    image: IMAGE, diskRule: {}, rootDisk: 'S1', wipeDisks: ['S1', 'S2'], actions: [step('wipe-disk'), step('write-image'), step('write-seed'), step('set-next-boot'), step('reboot')], seed: null, allowUnproven: false, confirmBy: 'seed-fetched', ...extra,
  });
  const TWO = [disk('S1', { wwn: 'eui.01' }), disk('S2')];
  const ROOT = { serial: 'S1', wwn: 'eui.01' };

  test('makes one order of each action, and of a wipe one for each listed disk', () => {
    expect(pinActions(planOf(), TWO)).toEqual({
      kind: 'pinned',
      disk: 'S1',
      actions: [
        { title: 'do wipe-disk S/N S1', action: { name: 'wipe-disk', disk: ROOT }, destructive: true, timeoutSeconds: 60 },
        { title: 'do wipe-disk S/N S2', action: { name: 'wipe-disk', disk: { serial: 'S2' } }, destructive: true, timeoutSeconds: 60 },
        { title: 'do write-image', action: { name: 'write-image', disk: ROOT, url: 'http://10.0.0.1/a', sha256: SHA, sizeBytes: 800, compression: 'gzip', unpackedBytes: 1000 }, destructive: true, timeoutSeconds: 60 },
        { title: 'do write-seed', action: { name: 'write-seed', disk: ROOT, place: 'efi' }, destructive: false, timeoutSeconds: 60 },
        { title: 'do set-next-boot', action: { name: 'set-next-boot', disk: ROOT }, destructive: false, timeoutSeconds: 60 },
        { title: 'do reboot', action: { name: 'reboot' }, destructive: false, timeoutSeconds: 60 },
      ],
    });
  });
  test('of a wipe needs no root disk, and touches none that is not listed', () => {
    const pinned = pinActions(planOf({ kind: 'wipe', actions: [step('wipe-disk')], rootDisk: 'gone', image: null, wipeDisks: ['eui.01'] }), [...TWO, disk('S3')]);
    expect(pinned).toMatchObject({ kind: 'pinned', disk: null, actions: [{ title: 'do wipe-disk S/N S1' }] });
  });
  test('gives every order a title of its own', () => {
    const pinned = pinActions(planOf({ wipeDisks: ['S1', 'eui.01', 'S2', 'S2'] }), TWO);
    const titles = pinned.kind === 'pinned' ? pinned.actions.map((action) => action.title) : [];
    expect(titles).toHaveLength(6);
    expect(new Set(titles).size).toBe(6);
  });
  test.each([['cloud-init-nocloud', 'nocloud'], ['talos', 'efi'], ['nixos-image', 'efi'], ['alpine-image', 'efi']] as const)('the seed of %s is placed in %s', (payload, place) => {
    expect(pinActions(planOf({ payload, actions: [step('write-seed')] }), TWO)).toMatchObject({ actions: [{ action: { place } }] });
  });
  test.each<[string, Partial<RunPlan>, Disk[], string, string]>([
    ['the root disk is not on the list', { wipeDisks: ['S2'] }, TWO, 'disk_not_listed', 'S1'],
    ['a provision writes to a disk that nobody listed', { kind: 'provision', wipes: false, wipeDisks: [], actions: [step('write-image')] }, TWO, 'disk_not_listed', 'S1'],
    ['the root disk is too small by one byte', {}, [disk('S1', { sizeBytes: 999 }), disk('S2')], 'disk_too_small', '999'],
    ['several disks fit the class rule', { rootDisk: null }, TWO, 'disk_several_match', '2 disks'],
    ['no disk fits the class rule', { rootDisk: null, diskRule: { minBytes: 5000 } }, TWO, 'disk_none_matches', '5000'],
    ['the root disk is missing', { rootDisk: 'S9' }, TWO, 'disk_none_matches', 'root_disk S9'],
    ['a listed disk is missing', { wipeDisks: ['S1', 'S9'] }, TWO, 'disk_none_matches', 'wipe_disks S9'],
    ['two disks have the listed serial', { wipeDisks: ['S1', 'S2'] }, [...TWO, disk('S2')], 'disk_several_match', 'wipe_disks S2'],
    ['there are no disks', {}, [], 'disk_none_matches', 'none'],
  ])('is refused when %s', (_why, extra, disks, code, says) => {
    expect(pinActions(planOf(extra), disks)).toMatchObject({ kind: 'refused', failure: { code, message: expect.stringContaining(says) } });
  });
  test('takes a disk that has just the size of the image', () => {
    expect(pinActions(planOf(), TWO)).toMatchObject({ kind: 'pinned' });
  });
});
