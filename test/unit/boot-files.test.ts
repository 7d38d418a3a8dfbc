import { mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createBootFiles, type BootFile } from '../../src/boot/files.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootFolder, patterned, type BootFolder } from '../support/tftp-server.js';

const KEPT = 4 * 1024 * 1024;
let folder: BootFolder;
let time: number;
beforeEach(async () => {
  time = 0;
  folder = await bootFolder({ 'a.efi': 'on disk', 'deep/er/b': 'b', '../private/secret': 'secret' });
});
afterEach(() => folder.remove());

const filesOf = (inMemory?: ReadonlyMap<string, Buffer>) => createBootFiles({ roots: [folder.root, join(folder.root, 'none')], inMemory, log: silentLogger(), now: () => new Date(time) });
async function text(file: BootFile | null): Promise<string | null> {
  if (!file) return null;
  const bytes = await file.read(0, file.size);
  await file.close();
  return bytes.toString();
}

describe('boot files', () => {
  test('are those of the folders and those in memory, and the disk goes first', async () => {
    const files = filesOf(new Map([['a.efi', Buffer.from('hidden')], ['m', Buffer.from('memory')]]));
    expect(await files.names()).toEqual(['a.efi', 'deep/er/b', 'm']);
    expect([await text(await files.open('a.efi')), await text(await files.open('deep/er/b')), await text(await files.open('m'))]).toEqual(['on disk', 'b', 'memory']);
  });

  test.each(['', '.', '..', 'deep', 'deep/er', '/a.efi', './a.efi', 'deep/../a.efi', '../private/secret', 'a.efi/', '__proto__', 'constructor', 'a.efi\0'])('%j is the name of none', async (name) => {
    expect(await filesOf().open(name)).toBeNull();
  });

  test('a file that many ask for at once is read once, for all of them', async () => {
    const files = filesOf();
    const opened = await Promise.all(Array.from({ length: 20 }, () => files.open('a.efi')));
    expect(opened[0]!.bytes!.toString()).toBe('on disk');
    for (const file of opened) expect(file!.bytes).toBe(opened[0]!.bytes);
  });

  test('a link of a name that may lead out does, as in the package ipxe of Debian; any other is refused', async () => {
    await symlink('../private/secret', join(folder.root, 'ipxe.efi'));
    await symlink('../private/secret', join(folder.root, 'other.efi'));
    const files = createBootFiles({ roots: [folder.root], mayLeadOut: ['ipxe.efi'], log: silentLogger() });
    expect([await text(await files.open('ipxe.efi')), await files.open('other.efi')]).toEqual(['secret', null]);
  });
  test('links are followed inside the folder only', async () => {
    await symlink(join(folder.root, 'deep/er/b'), join(folder.root, 'in'));
    await symlink('../private/secret', join(folder.root, 'out'));
    await symlink('../private', join(folder.root, 'outdir'));
    await symlink('nowhere', join(folder.root, 'dangling'));
    expect(await filesOf().names()).toEqual(['a.efi', 'deep/er/b', 'in']);
  });

  test('a file that was swapped for a link since the walk is not opened', async () => {
    const files = filesOf();
    await files.names();
    await rm(join(folder.root, 'a.efi'));
    await symlink('../private/secret', join(folder.root, 'a.efi'));
    expect(await files.open('a.efi')).toBeNull();
  });

  test('a folder that was swapped for a link since the walk is not followed', async () => {
    await writeFile(join(folder.root, '../private/b'), 'not ours');
    const files = filesOf();
    await files.names();
    await rm(join(folder.root, 'deep'), { recursive: true });
    await mkdir(join(folder.root, 'deep'));
    await symlink('../../private', join(folder.root, 'deep/er'));
    expect(await files.open('deep/er/b')).toBeNull();
  });

  test('a new file is found by the first miss a second after the last walk', async () => {
    const files = filesOf();
    await files.names();
    await folder.put('late', 'late');
    expect(await files.open('late')).toBeNull();
    time = 1000;
    expect(await text(await files.open('late'))).toBe('late');
  });

  test('a file that is replaced is read anew, under another version', async () => {
    const files = filesOf();
    const before = (await files.open('a.efi'))!;
    await writeFile(join(folder.root, 'next'), 'replaced!');
    await rename(join(folder.root, 'next'), join(folder.root, 'a.efi'));
    const after = (await files.open('a.efi'))!;
    expect(after.version).not.toBe(before.version);
    expect([await text(before), await text(after)]).toEqual(['on disk', 'replaced!']);
  });

  test('a large file is read from the disk by offset, and shows when it became shorter', async () => {
    const bytes = patterned(KEPT + 100);
    await folder.put('large', bytes);
    const file = (await filesOf().open('large'))!;
    expect((await file.read(KEPT, 1000)).equals(bytes.subarray(KEPT))).toBe(true);
    await truncate(join(folder.root, 'large'), 10);
    expect((await file.read(0, 100)).length).toBe(10);
    await file.close();
    await file.close();
  });
});
