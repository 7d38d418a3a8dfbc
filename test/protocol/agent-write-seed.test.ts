import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { parse as parseYaml } from 'yaml';
import { doAction } from '../../src/agent/actions/index.js';
import type { ActionContext, ActionDone } from '../../src/agent/actions/action.js';
import { NOCLOUD_FOLDER } from '../../src/agent/actions/write-seed.js';
import { createExt4Files, type Ext4Found } from '../../src/agent/ext4-files.js';
import { readFatFile, writeFatFile } from '../../src/agent/fat-files.js';
import { fileDisk } from '../../src/agent/file-disk.js';
import type { DiskHandle } from '../../src/contracts/agent-machine.js';
import { createDiskFileReader } from '../../src/agent/read-disk-file.js';
import { findEfiPartition, findRootPartition } from '../../src/agent/partitions.js';
import type { SeedFile } from '../../src/contracts/order.js';
import { createTestNode, demoImage, quickSleep, type TestNode } from '../support/agent-node.js';

const MIB = 1024 * 1024;
const CODE = 'code-0123456789';
const META = { path: 'meta-data', content: 'instance-id: 4c4c4544-0042-3510-8051-b4c04f4a4d31-3\nlocal-hostname: "node: 1 #x"\n', mode: 0o644 };
const USER = { path: 'user-data', content: '#cloud-config\r\nphone_home:\n  url: https://x/?c=@INSTALL_CODE@\n', mode: 0o644 };
const FLEET = { path: 'fleet-seed.json', content: JSON.stringify({ version: 1, installCode: '@INSTALL_CODE@', nodeName: 'node: 1 #x' }), mode: 0o600 };

let node: TestNode;
let seed: SeedFile[];
const ext4 = createExt4Files();
const never = new AbortController().signal;

beforeEach(() => {
  node = createTestNode();
});
afterEach(() => node.remove());

const write = (place: 'efi' | 'nocloud', extra: Partial<ActionContext> = {}): Promise<ActionDone> =>
  doAction({ name: 'write-seed', disk: { serial: 'S1' }, place }, {
    machine: node.machine, signal: never, progress: () => undefined, sleep: quickSleep(), now: () => new Date('2026-11-30T12:34:56Z'), installCode: CODE, fetchSeed: async () => seed, ext4, ...extra,
  });
const onDisk = async <T>(use: (handle: DiskHandle) => Promise<T>): Promise<T> => {
  const handle = await (await node.machine.disks())[0]!.open();
  return use(handle).finally(() => handle.close());
};
const onRoot = (...names: string[]): Promise<Ext4Found[]> => onDisk(async (handle) => ext4.read(handle, await findRootPartition(handle), NOCLOUD_FOLDER, names, never));
const onEfi = (name: string): Promise<Buffer | null> => onDisk(async (handle) => readFatFile(handle, await findEfiPartition(handle), name));
/** Debian's own checkers, where they are installed. */
const checker = (program: string): typeof it => (spawnSync(program, ['-V'], { env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin' } }).error ? it.skip : it);
const check = (program: string, args: string[], image: Buffer): { status: number | null; text: string } => {
  const path = node.pathOf('checked');
  writeFileSync(path, image);
  const { status, stdout, stderr } = spawnSync(program, [...args, path], { env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin' }, encoding: 'utf8' });
  return { status, text: `${stdout}${stderr}` };
};

describe('the NoCloud tree on the root partition (M3)', () => {
  beforeEach(async () => {
    await node.addDisk('S1', demoImage('cloud-init-nocloud').raw);
    seed = [META, USER];
  });

  it('has meta-data and user-data, byte for byte, with the install code in place of its mark', async () => {
    const done = await write('nocloud');
    const [meta, user] = await onRoot('meta-data', 'user-data');
    expect(meta!.content!.toString()).toBe(META.content);
    expect(user!.content!.toString()).toBe(USER.content.replace('@INSTALL_CODE@', CODE));
    expect(parseYaml(meta!.content!.toString())).toEqual({ 'instance-id': '4c4c4544-0042-3510-8051-b4c04f4a4d31-3', 'local-hostname': 'node: 1 #x' });
    expect(done.evidence).toMatchObject({ place: 'nocloud', files: 'meta-data, user-data' });
    expect(JSON.stringify(done)).not.toContain(CODE);
  });

  it('holds files of any length and any byte', async () => {
    const large = '\u0000\u00ff\u20ac\r\n'.repeat(20_000);
    seed = [META, USER, { path: 'vendor-data', content: large, mode: 0o644 }, { path: 'network-config', content: '', mode: 0o644 }];
    await write('nocloud');
    const [vendor, network] = await onRoot('vendor-data', 'network-config');
    expect(vendor!.content!.equals(Buffer.from(large, 'utf8'))).toBe(true);
    expect(network!.content).toHaveLength(0);
  });

  it('gives mode 0600 to a file that holds the code, and no half-written file stays', async () => {
    await write('nocloud');
    const found = await onRoot('meta-data', 'user-data', 'user-data.new', 'meta-data.new');
    expect(found.map(({ mode, content }) => [mode, content === null])).toEqual([[0o644, false], [0o600, false], [0, true], [0, true]]);
  });

  it('is the same after the same order again, and new after a re-provision', async () => {
    await write('nocloud');
    await write('nocloud');
    expect((await onRoot('meta-data'))[0]!.content!.toString()).toContain('-3\n');
    seed = [{ ...META, content: META.content.replace('-3\n', '-4\n') }, USER];
    await write('nocloud');
    expect((await onRoot('meta-data'))[0]!.content!.toString()).toContain('-4\n');
  });

  it.each<[string, SeedFile[]]>([
    ['user-data alone', [USER]],
    ['meta-data alone', [META]],
    ['no file at all', []],
    ['a path that climbs', [META, USER, { path: '../../../../etc/shadow', content: 'x', mode: 0o600 }]],
    ['an absolute path', [META, USER, { path: '/etc/shadow', content: 'x', mode: 0o600 }]],
    ['two files of one name', [META, USER, { ...USER, content: 'x' }]],
  ])('%s is refused as seed_invalid, and not one byte is written', async (_, files) => {
    seed = files;
    await expect(write('nocloud')).rejects.toMatchObject({ code: 'seed_invalid' });
    expect(node.contentOf('S1').equals(demoImage('cloud-init-nocloud').raw)).toBe(true);
  });

  it.each([['none', null], ['one that JSON and YAML would misread', 'a"b\n']])('a seed that wants an install code gets none with %s', async (_, installCode) => {
    await expect(write('nocloud', { installCode })).rejects.toMatchObject({ code: 'seed_invalid' });
    expect(node.contentOf('S1').equals(demoImage('cloud-init-nocloud').raw)).toBe(true);
  });

  it('that reads back as something else fails by name', async () => {
    const spoiled = { ...ext4, place: async (...given: Parameters<typeof ext4.place>) => (await ext4.place(...given)).map((file) => ({ ...file, content: Buffer.from('x') })) };
    await expect(write('nocloud', { ext4: spoiled })).rejects.toMatchObject({ code: 'seed_write_failed', details: { path: 'meta-data', serial: 'S1' } });
  });

  it('on a damaged file system fails, and the process lives', async () => {
    const { offset } = await onDisk(findRootPartition);
    const image = node.contentOf('S1');
    image.fill(0xff, offset + 1024 + 0x40, offset + 200_000);
    writeFileSync(node.pathOf('S1'), image);
    const listeners = process.listenerCount('uncaughtException');
    await expect(write('nocloud')).rejects.toMatchObject({ code: 'seed_write_failed' });
    expect(process.listenerCount('uncaughtException')).toBe(listeners);
  });

  it('is placed by the bundled worker as by its source', async () => {
    const outfile = node.pathOf('ext4-worker').replace('.img', '.cjs');
    await build({ entryPoints: [join(__dirname, '../../src/agent/ext4-worker/ext4-worker.mjs')], bundle: true, platform: 'node', target: 'node20', format: 'cjs', outfile, logLevel: 'silent' });
    await write('nocloud', { ext4: createExt4Files({ worker: pathToFileURL(outfile) }) });
    expect((await onRoot('meta-data'))[0]!.content!.toString()).toBe(META.content);
  });

  it('is found on the disk file by the reader of the simulated system, and nothing else is', async () => {
    await write('nocloud');
    const before = node.contentOf('S1');
    const readDiskFile = createDiskFileReader({ ext4 });
    const read = (place: 'efi' | 'root', path: string): Promise<string | undefined> => readDiskFile(node.pathOf('S1'), place, path).then((bytes) => bytes?.toString());
    expect(await read('root', 'var/lib/cloud/seed/nocloud/meta-data')).toBe(META.content);
    expect(await read('root', 'etc/metalflow-payload.json')).toContain('cloud-init-nocloud');
    expect(await read('root', 'var/lib/nothing/here')).toBeUndefined();
    expect(await read('efi', 'fleet-seed.json')).toBeUndefined();
    expect(node.contentOf('S1').equals(before)).toBe(true);
    writeFileSync(node.pathOf('S1'), Buffer.alloc(MIB));
    expect(await read('root', 'etc/hostname')).toBeUndefined();
  });

  checker('e2fsck')('leaves a file system that e2fsck finds clean', async () => {
    await write('nocloud');
    const { offset, sizeBytes } = await onDisk(findRootPartition);
    expect(check('e2fsck', ['-fn'], node.contentOf('S1').subarray(offset, offset + sizeBytes))).toMatchObject({ status: 0 });
  });
});

describe('fleet-seed.json on the EFI system partition (M3)', () => {
  beforeEach(async () => {
    await node.addDisk('S1', demoImage('talos').raw);
    seed = [FLEET];
  });

  it('is whole JSON with the install code, beside what the image had', async () => {
    await write('efi');
    expect(JSON.parse((await onEfi('fleet-seed.json'))!.toString())).toEqual({ version: 1, installCode: CODE, nodeName: 'node: 1 #x' });
    expect(JSON.parse((await onEfi('payload.json'))!.toString())).toEqual({ payload: 'talos', version: 1 });
  });

  it('changes nothing when it is placed again', async () => {
    await write('efi');
    const before = node.contentOf('S1');
    await write('efi');
    expect(node.contentOf('S1').equals(before)).toBe(true);
  });

  it('is replaced when its content is another', async () => {
    await write('efi');
    await write('efi', { installCode: 'another-code' });
    expect((await onEfi('fleet-seed.json'))!.toString()).toContain('another-code');
  });

  it('needs an EFI system partition', async () => {
    const image = node.contentOf('S1');
    image.fill(0, 0, MIB);
    writeFileSync(node.pathOf('S1'), image);
    await expect(write('efi')).rejects.toMatchObject({ code: 'seed_place_missing' });
  });

  it('is not placed by a partition table whose checksum is wrong', async () => {
    const image = node.contentOf('S1');
    image[1024 + 40] = image[1024 + 40]! ^ 1;
    writeFileSync(node.pathOf('S1'), image);
    await expect(write('efi')).rejects.toMatchObject({ code: 'seed_place_missing', message: expect.stringContaining('checksums') });
  });
});

it.each(['', '.', '..', 'a/b', 'a\\b', 'ü.json', 'x'.repeat(61), 'dot.'])('%j is no name of a file in the root folder', async (name) => {
  await node.addDisk('V', demoImage('talos').raw.subarray(MIB, 4 * MIB));
  const before = node.contentOf('V');
  const volume = await (await node.machine.disks())[0]!.open();
  await expect(writeFatFile(volume, { offset: 0, sizeBytes: before.length }, { name, content: Buffer.from('x'), at: new Date() })).rejects.toThrow('no name');
  await volume.close();
  expect(node.contentOf('V').equals(before)).toBe(true);
});

it('a file that is replaced gives its room back to the volume', async () => {
  await node.addDisk('V', demoImage('talos').raw.subarray(MIB, 4 * MIB));
  const volume = await (await node.machine.disks())[0]!.open();
  const put = (name: string, content: Buffer): Promise<void> => writeFatFile(volume, { offset: 0, sizeBytes: volume.sizeBytes }, { name, content, at: new Date() });
  const large = Buffer.alloc(2 * MIB, 1);
  await put('large.bin', large);
  await put('large.bin', Buffer.from('small'));
  await put('other.bin', large);
  await expect(put('third.bin', large)).rejects.toThrow('full');
  await volume.close();
});

describe.each([
  ['FAT16', demoImage('talos').raw.subarray(MIB, 4 * MIB)],
  ['FAT32', gunzipSync(readFileSync(join(__dirname, '../fixtures/images/fat32-esp.img.gz')))],
])('files in the root folder of %s', (_, made) => {
  let volume: DiskHandle;
  const at = new Date('2026-11-30T12:34:56Z');
  const whole = (): { offset: number; sizeBytes: number } => ({ offset: 0, sizeBytes: volume.sizeBytes });
  const put = (name: string, content: Buffer): Promise<void> => writeFatFile(volume, whole(), { name, content, at });
  const get = (name: string): Promise<Buffer | null> => readFatFile(volume, whole(), name);

  beforeEach(async () => {
    await node.addDisk('V', made);
    volume = await (await fileDisk({ path: node.pathOf('V'), serial: 'V' })).open();
  });
  afterEach(() => volume.close());

  it('come back as they were put, whatever their length', async () => {
    const files = [0, 1, 511, 512, 513, 5000].map((length) => [`file-of-${length}-bytes.json`, Buffer.alloc(length, `${length}-`)] as const);
    for (const [name, content] of files) await put(name, content);
    for (const [name, content] of files) expect((await get(name))!.equals(content)).toBe(true);
    expect(await get('no-such-file.json')).toBeNull();
  });

  it('are found in any letter case, once', async () => {
    await put('Fleet-Seed.json', Buffer.from('one'));
    await put('fleet-seed.json', Buffer.from('two'));
    expect((await get('FLEET-SEED.JSON'))!.toString()).toBe('two');
  });

  it('are more than one piece of the folder holds, and all are found', async () => {
    const names = Array.from({ length: 40 }, (__, index) => `a-rather-long-name-number-${index}.json`);
    for (const name of names) await put(name, Buffer.from(name));
    for (const name of names) expect((await get(name))?.toString()).toBe(name);
  });

  it('are absent or whole wherever the power goes (M3)', async () => {
    await put('fleet-seed.json', Buffer.from('the old content '.repeat(100)));
    const before = node.contentOf('V');
    const writes: { position: number; bytes: Buffer }[] = [];
    const recording: DiskHandle = { ...volume, write: async (position, bytes) => {
      writes.push({ position, bytes: Buffer.from(bytes) });
      await volume.write(position, bytes);
    } };
    await writeFatFile(recording, whole(), { name: 'fleet-seed.json', content: Buffer.from('the new content '.repeat(120)), at });
    expect(writes.length).toBeGreaterThan(4);

    const seen: string[] = [];
    writeFileSync(node.pathOf('V'), before);
    for (const { position, bytes } of writes) {
      await volume.write(position, bytes);
      const found = await get('fleet-seed.json');
      seen.push(found === null ? 'absent' : found.toString().slice(0, 15));
      if (found) expect([1600, 1920]).toContain(found.length);
    }
    expect(seen.filter((one, index) => one !== seen[index - 1])).toEqual(['the old content', 'absent', 'the new content']);
  });

  checker('fsck.fat')('leave a volume that fsck.fat finds clean', async () => {
    await put('fleet-seed.json', Buffer.alloc(3000, 'x'));
    await put('fleet-seed.json', Buffer.alloc(700, 'y'));
    await put('Fleet-Seed-2.json', Buffer.alloc(0));
    expect(check('fsck.fat', ['-n'], node.contentOf('V'))).toMatchObject({ status: 0 });
  });
});
