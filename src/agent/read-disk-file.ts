/** Reads one file off a disk image, without mounting: how a simulated system finds the seed that the agent placed. */
import { open } from 'node:fs/promises';
import { posix } from 'node:path';
import { isMetalflowError } from '../domain/errors.js';
import { createDiskHandle } from './disk-handle.js';
import type { Ext4Files } from './ext4-files.js';
import { readFatFile } from './fat-files.js';
import type { DiskHandle } from '../contracts/agent-machine.js';
import { findEfiPartition, findRootPartition, type Partition } from './partitions.js';

/** No table, or no such partition in it: then there is no such file either. */
async function partitionOf(disk: DiskHandle, place: 'efi' | 'root'): Promise<Partition | null> {
  try {
    return await (place === 'efi' ? findEfiPartition : findRootPartition)(disk);
  } catch (error) {
    if (isMetalflowError(error) && error.code === 'seed_place_missing') return null;
    throw error;
  }
}

/**
 * A reader of disk files. `efi`: a name in the root folder of the EFI system partition; `root`: a path on the ext4 root partition.
 * @returns null when the disk has no such file @throws plain errors for a damaged file system or a disk that cannot be read
 */
export function createDiskFileReader({ ext4 }: { ext4: Ext4Files }): (diskPath: string, place: 'efi' | 'root', path: string, signal?: AbortSignal) => Promise<Buffer | null> {
  return async (diskPath, place, path, signal = new AbortController().signal) => {
    const handle = await open(diskPath, 'r');
    try {
      const disk = createDiskHandle({ handle, serial: posix.basename(diskPath), sizeBytes: (await handle.stat()).size });
      // Too small for a partition table: a new, empty disk.
      const partition = disk.sizeBytes < 8192 ? null : await partitionOf(disk, place);
      if (!partition) return null;
      if (place === 'efi') return await readFatFile(disk, partition, path);
      const absolute = posix.join('/', path);
      const [found] = await ext4.read(disk, partition, posix.dirname(absolute), [posix.basename(absolute)], signal);
      return found?.content ?? null;
    } finally {
      await handle.close();
    }
  };
}
