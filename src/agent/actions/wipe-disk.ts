/** `wipe-disk`: destroys what a listed disk holds, and looks whether it is gone. */
import type { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import type { WipeDiskAction } from '../../contracts/order.js';
import type { DiskHandle } from '../../contracts/agent-machine.js';
import { findDiskToDestroy, withDisk } from '../pinned-disk.js';
import { MIB, type ActionContext, type DoAction } from './action.js';

const CHUNK = 4 * MIB;
const SAMPLES = 64;
const SAMPLE_BYTES = 64 * 1024;

/** `discard`: the device forgot everything at our word and reads zeros. `zero`: zeros were written over all of it. */
type Method = 'discard' | 'zero';

/** Where partition tables and their backups lie (GPT keeps its copy in the last sectors). Written even before a discard, which a device may ignore. */
async function blankEdges(disk: DiskHandle): Promise<void> {
  const edge = Buffer.alloc(Math.min(MIB, disk.sizeBytes));
  await disk.write(0, edge);
  await disk.write(disk.sizeBytes - edge.length, edge);
  await disk.flush();
}

async function zeroAll(disk: DiskHandle, { signal, progress }: ActionContext): Promise<void> {
  const zeros = Buffer.alloc(Math.min(CHUNK, disk.sizeBytes));
  for (let position = 0; position < disk.sizeBytes; position += CHUNK) {
    signal.throwIfAborted();
    const length = Math.min(CHUNK, disk.sizeBytes - position);
    await disk.write(position, zeros.subarray(0, length));
    progress({ done: position + length, total: disk.sizeBytes, unit: 'bytes', note: 'writing zeros' });
  }
  await disk.flush();
}

/** The first position at which a sample is not zero; null when all are. Samples: both edges, and a fixed number spread evenly. */
async function firstTrace(disk: DiskHandle, signal: AbortSignal): Promise<number | null> {
  const edge = Math.min(MIB, disk.sizeBytes);
  const sample = Math.min(SAMPLE_BYTES, disk.sizeBytes);
  const step = (disk.sizeBytes - sample) / SAMPLES;
  const places = [[0, edge], [disk.sizeBytes - edge, edge], ...Array.from({ length: SAMPLES }, (_, index) => [Math.floor(index * step), sample])] as [number, number][];
  for (const [position, length] of places) {
    signal.throwIfAborted();
    const bytes = await disk.read(position, length);
    const at = bytes.findIndex((byte) => byte !== 0);
    if (at !== -1) return position + at;
  }
  return null;
}

/**
 * Not a sanitize of the media: what a drive keeps in spare blocks is beyond reach of these methods; the method is in the evidence.
 * @throws disk_wipe_unproven when a sample still reads data; disk_none_matches, disk_several_match, disk_shared
 */
export const wipeDisk: DoAction<z.infer<typeof WipeDiskAction>> = async (action, context) => {
  const disk = await findDiskToDestroy(context.machine, action.disk);
  const { signal, progress } = context;
  progress({ done: 0, total: disk.sizeBytes, unit: 'bytes' });
  const method = await withDisk(disk, async (handle): Promise<Method> => {
    await blankEdges(handle);
    if ((await handle.discard()) && (await firstTrace(handle, signal)) === null) return 'discard';
    await zeroAll(handle, context);
    return 'zero';
  });
  // Through a fresh open, so that the device is read and not the page cache.
  const at = await withDisk(disk, (handle) => firstTrace(handle, signal));
  if (at !== null) throw new MetalflowError('disk_wipe_unproven', { serial: disk.serial, at });
  return { message: `wiped disk ${disk.serial} (${method})`, evidence: { serial: disk.serial, method, bytes: disk.sizeBytes, samples: SAMPLES + 2 } };
};
