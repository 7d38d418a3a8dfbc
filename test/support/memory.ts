/** What a process on this machine holds, as the kernel says. */
import { readdirSync, readFileSync } from 'node:fs';

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found![1]) * 1024;
}

export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
