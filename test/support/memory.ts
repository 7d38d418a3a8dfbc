/** What a process on this machine holds, as the kernel says. */
import { readdirSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found![1]) * 1024;
}

export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes in use in this process, buffers too, once all that can be forgotten is. */
export function keptBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
