/** `write-seed`: places what the installed system reads at its first boot, with the node's install code in it. */
import type { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import { INSTALL_CODE_MARK } from '../../contracts/agent-api.js';
import type { SeedFile, WriteSeedAction } from '../../contracts/order.js';
import { readFatFile, writeFatFile } from '../fat-files.js';
import type { DiskHandle } from '../../contracts/agent-machine.js';
import { findEfiPartition, findRootPartition } from '../partitions.js';
import { findDisk, withDisk } from '../pinned-disk.js';
import type { ActionContext, DoAction } from './action.js';

export const NOCLOUD_FOLDER = '/var/lib/cloud/seed/nocloud';
/** cloud-init ignores the whole folder, silently, when one of these is missing (M3). */
const NOCLOUD_NEEDS = ['meta-data', 'user-data'];
/** One step below the place: neither place has folders. */
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/;
/** What an install code may consist of: nothing that JSON, YAML or a URL would read as more than text. */
const PLAIN_CODE = /^[A-Za-z0-9._~-]{1,200}$/;

interface ReadyFile {
  readonly name: string;
  readonly content: Buffer;
  readonly mode: number;
}

/** @throws seed_invalid, naming the file and never its content */
function readyFiles(files: readonly SeedFile[], place: 'efi' | 'nocloud', installCode: string | null): ReadyFile[] {
  const refuse = (what: string): MetalflowError => new MetalflowError('seed_invalid', { what });
  if (files.length === 0) throw refuse('it has no files');
  const missing = place === 'nocloud' ? NOCLOUD_NEEDS.filter((name) => !files.some(({ path }) => path === name)) : [];
  if (missing.length > 0) throw refuse(`${missing.join(' and ')} missing; cloud-init needs both meta-data and user-data`);
  const names = new Set(files.map(({ path }) => path.toLowerCase()));
  if (names.size !== files.length) throw refuse('two files have the same name');
  return files.map(({ path, content, mode }) => {
    if (!PLAIN_NAME.test(path)) throw refuse(`${JSON.stringify(path.slice(0, 60))} is no name for a file of a seed`);
    const secret = content.includes(INSTALL_CODE_MARK);
    if (secret && installCode === null) throw refuse(`${path} wants an install code and this run has none`);
    if (secret && !PLAIN_CODE.test(installCode!)) throw refuse('the install code has characters that a seed cannot hold');
    // A function, because `$&` in a replacement text would mean something.
    const text = secret ? content.replaceAll(INSTALL_CODE_MARK, () => installCode!) : content;
    return { name: path, content: Buffer.from(text, 'utf8'), mode: secret ? 0o600 : mode };
  });
}

async function placeOnEfi(disk: DiskHandle, files: readonly ReadyFile[], { now, signal }: ActionContext): Promise<(Buffer | null)[]> {
  const partition = await findEfiPartition(disk);
  const found: (Buffer | null)[] = [];
  for (const { name, content } of files) {
    signal.throwIfAborted();
    await writeFatFile(disk, partition, { name, content, at: now() });
    found.push(await readFatFile(disk, partition, name));
  }
  return found;
}

/** A file that others may read is as wrong as one with other content. */
async function placeOnRoot(disk: DiskHandle, files: readonly ReadyFile[], { ext4, signal }: ActionContext): Promise<(Buffer | null)[]> {
  const partition = await findRootPartition(disk);
  const found = await ext4.place(disk, partition, NOCLOUD_FOLDER, files, signal);
  return found.map(({ content, mode }, index) => (mode === files[index]!.mode ? content : null));
}

/**
 * The same order again places the same files. Secrets get mode 0600 (FAT has no modes).
 * @throws seed_invalid before anything is written; seed_place_missing; seed_write_failed; disk_none_matches, disk_several_match
 */
export const writeSeed: DoAction<z.infer<typeof WriteSeedAction>> = async ({ disk: ref, place }, context) => {
  const disk = await findDisk(context.machine, ref);
  const files = readyFiles(await context.fetchSeed(), place, context.installCode);
  const failed = (path: string, why: string): MetalflowError => new MetalflowError('seed_write_failed', { path, serial: disk.serial, why });
  await withDisk(disk, async (handle) => {
    let found: (Buffer | null)[];
    try {
      found = await (place === 'efi' ? placeOnEfi : placeOnRoot)(handle, files, context);
    } catch (error) {
      if (error instanceof MetalflowError || context.signal.aborted) throw error;
      throw failed(place === 'efi' ? 'a file of the EFI system partition' : NOCLOUD_FOLDER, (error as Error).message);
    }
    await handle.flush();
    const wrong = files.find(({ content }, index) => found[index]?.equals(content) !== true);
    if (wrong) throw failed(wrong.name, 'it reads back as something else');
  });
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  context.progress({ done: bytes, total: bytes, unit: 'bytes', note: `placed ${files.length} files` });
  return { message: `placed ${files.length} files on disk ${disk.serial} (${place})`, evidence: { serial: disk.serial, place, files: files.map(({ name }) => name).join(', '), bytes } };
};
