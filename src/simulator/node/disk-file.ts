/** A disk of a simulated node: a sparse file, and what its firmware sees on it. */
import { closeSync, existsSync, mkdirSync, openSync, statSync, truncateSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import { issuesText } from '../../contracts/primitives.js';

/** A disk as it is ordered. Sizes in bytes, whole sectors of 512. */
export const DiskSpec = z.strictObject({
  name: z.string().regex(/^[a-z0-9]{1,30}$/, 'is no device name'),
  /** Also the name of its file. */
  serial: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$/, 'is no serial that can name a file'),
  wwn: z.string().max(60).optional(),
  model: z.string().max(60),
  sizeBytes: z.number().int().min(1024 * 1024).max(2 ** 44).multipleOf(512),
  bus: z.string().max(20),
});
export type DiskSpec = z.infer<typeof DiskSpec>;

export interface DiskFile extends DiskSpec {
  readonly path: string;
}

const refuse = (why: string): never => {
  throw new MetalflowError('setting_invalid', { name: 'disks', why });
};

/**
 * Makes the files that are missing, keeps those that are there.
 * @throws MetalflowError `setting_invalid` for a spec that does not fit, two disks of one serial or name, or a file of another size
 */
export function openDiskFiles({ folder, disks }: { folder: string; disks: readonly DiskSpec[] }): DiskFile[] {
  const parsed = z.array(DiskSpec).max(64).safeParse(disks);
  if (!parsed.success) return refuse(issuesText(parsed.error));
  for (const field of ['serial', 'name'] as const) {
    if (new Set(parsed.data.map((disk) => disk[field])).size < parsed.data.length) refuse(`two disks have the same ${field}`);
  }
  mkdirSync(folder, { recursive: true });
  return parsed.data.map((disk) => {
    const path = join(folder, `${disk.serial}.img`);
    if (!existsSync(path)) {
      closeSync(openSync(path, 'wx', 0o600));
      truncateSync(path, disk.sizeBytes);
    }
    // A machine whose disk changed size under the same serial does not exist; somebody mixed up two folders.
    const { size } = statSync(path);
    if (size !== disk.sizeBytes) refuse(`${disk.serial} has ${size} bytes, not ${disk.sizeBytes}`);
    return { ...disk, path };
  });
}

const SECTOR = 512;
/** Type GUID of an EFI system partition, as its sixteen bytes are on the disk (UEFI 2.10, table 5.7). */
const ESP_TYPE = Buffer.from('28732ac11ff8d211ba4b00a0c93ec93b', 'hex');
/** The fields of a GPT header that say where its entries are (UEFI 2.10, table 5.5). */
const HEADER = { entriesLba: 72, entryCount: 80, entrySize: 84 } as const;

/** Would firmware boot it? `partitioned` has a GPT with an EFI system partition; nothing else is bootable. */
export type DiskLook = { readonly kind: 'partitioned' } | { readonly kind: 'not-bootable'; readonly why: string };

/** Looks at a disk as UEFI firmware does. Reads at most the header and one table of entries, and never throws. */
export async function lookAtDisk(path: string): Promise<DiskLook> {
  const no = (why: string): DiskLook => ({ kind: 'not-bootable', why });
  let disk: FileHandle | undefined;
  try {
    disk = await open(path, 'r');
    const header = Buffer.alloc(SECTOR);
    await disk.read(header, 0, SECTOR, SECTOR);
    if (header.toString('latin1', 0, 8) !== 'EFI PART') return no('it has no partition table');
    const [lba, count, size] = [header.readBigUInt64LE(HEADER.entriesLba), header.readUInt32LE(HEADER.entryCount), header.readUInt32LE(HEADER.entrySize)];
    if (lba < 2n || lba > 2n ** 40n || count === 0 || count > 1024 || size < 128 || size > 4096) return no('its partition table is damaged');
    const entries = Buffer.alloc(count * size);
    await disk.read(entries, 0, entries.length, Number(lba) * SECTOR);
    for (let at = 0; at < entries.length; at += size) {
      if (entries.subarray(at, at + 16).equals(ESP_TYPE)) return { kind: 'partitioned' };
    }
    return no('it has no EFI system partition');
  } catch (error) {
    return no(`it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  } finally {
    await disk?.close();
  }
}
