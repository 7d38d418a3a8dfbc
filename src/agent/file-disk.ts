/** A disk that is a plain file: the disk of a simulated node. */
import { open, stat } from 'node:fs/promises';
import { createDiskHandle } from './disk-handle.js';
import type { AgentDisk } from '../contracts/agent-machine.js';

export interface FileDiskFacts {
  readonly path: string;
  readonly serial: string;
  readonly wwn?: string;
  readonly name?: string;
  readonly model?: string;
  readonly bus?: string;
}

/** The file is there already; its length is the disk's size. It cannot discard, so a wipe of it writes zeros. */
export async function fileDisk(facts: FileDiskFacts): Promise<AgentDisk> {
  const { size: sizeBytes } = await stat(facts.path);
  return {
    name: facts.name ?? 'vda',
    serial: facts.serial,
    ...(facts.wwn !== undefined && { wwn: facts.wwn }),
    model: facts.model ?? 'metalflow file disk',
    bus: facts.bus ?? 'virtio',
    sizeBytes,
    open: async () => createDiskHandle({ handle: await open(facts.path, 'r+'), serial: facts.serial, sizeBytes }),
  };
}
