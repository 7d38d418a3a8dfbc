/** Where on a disk the seed goes: reads the GUID partition table (UEFI 2.10 §5.3). */
import GPT from 'gpt';
import { MetalflowError } from '../domain/errors.js';
import type { DiskHandle } from '../contracts/agent-machine.js';

export interface Partition {
  /** 1 for the first used entry's place in the table, as `efibootmgr -p` counts. */
  readonly number: number;
  /** Lower-case type GUID. */
  readonly type: string;
  readonly offset: number;
  readonly sizeBytes: number;
}

export const EFI_SYSTEM = 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b';
/** Root partitions that name themselves (Discoverable Partitions Specification): x86-64 and arm64. */
const LINUX_ROOT = new Set(['4f68bce3-e8cd-4db1-96e7-fbcaf984b709', 'b921b045-1df0-41c3-af44-4c6f280d3fae']);

/** A table of 128 entries has 16 KiB; more than this is no table. */
const MOST_TABLE_BYTES = 1024 * 1024;

const missing = (disk: DiskHandle, why: string): MetalflowError => new MetalflowError('seed_place_missing', { serial: disk.serial, why });

/**
 * The partitions of the disk. The sector size is the one the table was made for: images are usually made for 512 bytes,
 * whatever the drive has.
 * @throws seed_place_missing when there is no intact table
 */
export async function readPartitions(disk: DiskHandle): Promise<Partition[]> {
  for (const sector of [512, 4096]) {
    const header = await disk.read(sector, 512);
    if (header.toString('latin1', 0, 8) !== 'EFI PART') continue;
    const gpt = new GPT({ blockSize: sector }).parseHeader(header);
    const tableBytes = gpt.entries * gpt.entrySize;
    const tableAt = Number(gpt.tableOffset) * sector;
    if (gpt.entrySize < 128 || tableBytes > MOST_TABLE_BYTES || tableAt + tableBytes > disk.sizeBytes) throw missing(disk, 'its partition table is damaged');
    const table = await disk.read(tableAt, tableBytes);
    // gpt clears the sum's own field while it counts, so it gets a copy.
    const intact = gpt.headerSize <= 512 && gpt.checksumHeader(Buffer.from(header.subarray(0, gpt.headerSize))) === gpt.headerChecksum && gpt.checksumTable(table) === gpt.tableChecksum;
    if (!intact) throw missing(disk, 'the checksums of its partition table are wrong');
    const entries = Array.from({ length: gpt.entries }, (_, index) => {
      gpt.partitions.length = 0;
      gpt.parseTable(table, index * gpt.entrySize, (index + 1) * gpt.entrySize);
      return { number: index + 1, entry: gpt.partitions[0] };
    });
    return entries.flatMap(({ number, entry }) => {
      if (!entry) return [];
      const offset = Number(entry.firstLBA) * sector;
      const sizeBytes = (Number(entry.lastLBA) - Number(entry.firstLBA) + 1) * sector;
      if (sizeBytes <= 0 || offset + sizeBytes > disk.sizeBytes) throw missing(disk, `partition ${number} reaches beyond the disk`);
      return [{ number, type: entry.type.toLowerCase(), offset, sizeBytes }];
    });
  }
  throw missing(disk, 'it has no GUID partition table');
}

/** @throws seed_place_missing unless there is exactly one EFI system partition */
export async function findEfiPartition(disk: DiskHandle): Promise<Partition> {
  const found = (await readPartitions(disk)).filter((partition) => partition.type === EFI_SYSTEM);
  if (found.length !== 1) throw missing(disk, `it has ${found.length} EFI system partitions`);
  return found[0]!;
}

/** ext2, 3 and 4 have their magic in the superblock, 1024 bytes in (s_magic at 0x38). */
async function isExt(disk: DiskHandle, partition: Partition): Promise<boolean> {
  return partition.sizeBytes > 2048 && (await disk.read(partition.offset + 1024 + 0x38, 2)).readUInt16LE(0) === 0xef53;
}

/**
 * The one ext4 partition; of several, the one whose type says that it is a root.
 * @throws seed_place_missing when that leaves none or more than one
 */
export async function findRootPartition(disk: DiskHandle): Promise<Partition> {
  const found: Partition[] = [];
  for (const partition of await readPartitions(disk)) if (await isExt(disk, partition)) found.push(partition);
  const roots = found.length > 1 ? found.filter(({ type }) => LINUX_ROOT.has(type)) : found;
  if (roots.length !== 1) throw missing(disk, `${found.length} of its partitions are ext4, and ${roots.length} of them can be the root`);
  return roots[0]!;
}
