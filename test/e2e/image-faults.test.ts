/** Artefacts and disks that are not what class and device say: a named failure, and nothing is armed, offered or written after it. */
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ErrorCode } from '../../src/domain/errors.js';
import type { NodeClass } from '../../src/contracts/node-class.js';
import { FACTORY_BOOT_ORDER } from '../../src/simulator/node/nvram.js';
import { addClass, begun, bootOrders, netboxJournal, orders, powerCommands, say, untilHeld, untilRunEnds } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const IMAGE = 'images/talos.raw.gz';
const MIB = 1024 * 1024;

let temporal: TestTemporal;
let world: World;
let cap: number;
beforeAll(async () => {
  temporal = await startTestTemporal();
  cap = 4 * MIB;
  world = await createWorld(temporal, { env: { METALFLOW_IMAGE_MAX_BYTES: String(cap) } });
  await world.start();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

const asset = (name: string): string => join(world.dir, 'assets', name);
/** The image again, under a name that a test may spoil. */
const copyOfImage = (name: string): string => {
  copyFileSync(asset(IMAGE), asset(`images/${name}`));
  return `asset:images/${name}`;
};
const classOf = (name: string, change: (nodeClass: NodeClass) => Partial<NodeClass>): string => {
  addClass(world, name, 'talos', change);
  return name;
};

/** The run failed with the code, people can read it in both places, and nothing is left armed. */
async function expectFailure(node: WorldNode, run: number, code: ErrorCode): Promise<void> {
  const ended = await untilRunEnds(world, node, run);
  expect(ended).toMatchObject({ end: 'failed', failure: { code } });
  await world.untilState(node, 'failed');
  await world.until('NetBox told', () => netboxJournal(world, node).some((text) => text.includes(ended.failure!.message)));
  expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'failed', customFields: { desired_action: null } });
  expect(node.machine.node.bootOrder()).toEqual(FACTORY_BOOT_ORDER);
  const script = await fetch(`${world.house.addresses.bootHttp}/ipxe/script/${node.mac}/auto.ipxe`);
  expect(await script.text()).toContain('netboot-not-allowed');
}

describe('an artefact that is not what the class says fails before any node is touched', () => {
  const ROWS: { name: string; code: ErrorCode; spoil: (nodeClass: NodeClass) => Partial<NodeClass>; fix: (nodeClass: NodeClass) => Partial<NodeClass> }[] = [
    { name: 'wrong-digest', code: 'image_digest_mismatch', spoil: ({ image }) => ({ image: { ...image, sha256: 'a'.repeat(64) } }), fix: () => ({}) },
    { name: 'cut-off-file', code: 'image_size_wrong', spoil: ({ image }) => (truncateSync(asset('images/cut.gz'), 1000), { image: { ...image, url: 'asset:images/cut.gz' } }), fix: ({ image }) => ({ image: { ...image, url: copyOfImage('cut.gz') } }) },
    { name: 'above-the-cap', code: 'image_too_large', spoil: ({ image }) => ({ image: { ...image, sizeBytes: cap + 1 } }), fix: () => ({}) },
    { name: 'wrong-length', code: 'image_size_wrong', spoil: ({ image }) => ({ image: { ...image, sizeBytes: image.sizeBytes + 1 } }), fix: () => ({}) },
    { name: 'missing-file', code: 'image_unreachable', spoil: ({ image }) => ({ image: { ...image, url: 'asset:images/nowhere.gz' } }), fix: () => ({}) },
  ];
  test.each(ROWS)('$name: $code; retry after the fix installs', async ({ name, code, spoil, fix }) => {
    copyOfImage('cut.gz');
    const node = await world.addNode({ customFields: { node_class: classOf(name, spoil) } });
    world.ask(node, 'provision');
    await expectFailure(node, 1, code);
    expect([powerCommands(node), bootOrders(node), await orders(world, node)]).toEqual([[], [], []]);
    classOf(name, fix);
    await say(world, node, 'retry');
    await world.untilState(node, 'active');
    expect(await world.run(node, 2)).toMatchObject({ end: 'done' });
  });
});

describe('disks that do not fit fail when the node has told its disks, before anything is ordered', () => {
  const ROWS: { name: string; code: ErrorCode; node: Parameters<World['addNode']>[0]; rule?: NodeClass['rootDisk']; fix: (node: WorldNode) => void }[] = [
    { name: 'no disk matches the class rule', code: 'disk_none_matches', node: {}, rule: { bus: 'nvme' }, fix: () => classOf('disk-class', () => ({})) },
    { name: 'root_disk names no disk', code: 'disk_none_matches', node: { customFields: { root_disk: 'NO-SUCH-DISK' } }, fix: (node) => world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } }) },
    { name: 'two disks match', code: 'disk_several_match', node: { secondDisk: true }, fix: (node) => world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } }) },
    { name: 'the disk is not on wipe_disks', code: 'disk_not_listed', node: { customFields: { wipe_disks: ['ANOTHER-DISK'] } }, fix: (node) => world.netbox.patchDevice(node.deviceId, { custom_fields: { wipe_disks: [node.serial] } }) },
  ];
  test.each(ROWS)('$name: $code; retry after the fix installs', async ({ code, node: options, rule, fix }) => {
    classOf('disk-class', () => (rule ? { rootDisk: rule } : {}));
    const node = await world.addNode({ ...options, customFields: { node_class: 'disk-class', ...options!.customFields } });
    world.ask(node, 'provision');
    await expectFailure(node, 1, code);
    expect([await orders(world, node), begun(node, 'write-image')]).toEqual([[], []]);
    fix(node);
    await say(world, node, 'retry');
    await world.untilState(node, 'active');
  });

  test('the disk is smaller than the image: disk_too_small, and not a byte of it is written', async () => {
    const node = await world.addNode({ diskBytes: 2 * MIB });
    const { path } = node.machine.node.disks()[0]!;
    world.ask(node, 'provision');
    await expectFailure(node, 1, 'disk_too_small');
    expect([await orders(world, node), begun(node, 'write-image')]).toEqual([[], []]);
    expect(readFileSync(path).every((byte) => byte === 0)).toBe(true);
  });
});

test('an image that changed between the check and the write is refused by the agent, and the disk does not boot', async () => {
  const node = await world.addNode({ customFields: { node_class: classOf('changing', ({ image }) => ({ image: { ...image, url: copyOfImage('changing.gz') } })) } });
  // The digest was checked and found good before the first power command; here the run waits, and one bit becomes another.
  await node.machine.amt.setFaults({ refuse: { RequestPowerStateChange: 2 } });
  world.ask(node, 'provision');
  await untilHeld(world, node, 'bmc_refused');
  const bytes = readFileSync(asset('images/changing.gz'));
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(asset('images/changing.gz'), bytes);
  await node.machine.amt.setFaults({ refuse: {} });
  await say(world, node, 'resume');
  await expectFailure(node, 1, 'image_digest_mismatch');
  expect((await orders(world, node)).map((row) => [row.action_name, row.state])).toEqual([['write-image', 'reported']]);
  // No partition table: what was written behind it is nothing that firmware would start.
  expect(readFileSync(node.machine.node.disks()[0]!.path).subarray(0, MIB).every((byte) => byte === 0)).toBe(true);
  copyOfImage('changing.gz');
  await say(world, node, 'retry');
  await world.untilState(node, 'active');
});
