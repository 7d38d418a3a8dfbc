/** A disk as the node's faults make it: slow, and dead with the machine. No byte is written after a power cut. */
import type { AgentDisk, DiskHandle } from '../../contracts/agent-machine.js';
import type { Sleep } from './sleep.js';

/** What a disk asks its machine. */
export interface DiskGuard {
  readonly signal: AbortSignal;
  readonly sleep: Sleep;
  readonly bytesPerSecond: () => number | undefined;
  /** Bytes of the next `length` that the machine lives to write. */
  readonly admit: (length: number) => number;
  /** Told after a write; the machine may freeze of it. */
  readonly wrote: (bytes: number) => void;
  /** Milliseconds by which the end of an action is put off. */
  readonly lateBy: () => number | undefined;
}

function guardHandle(handle: DiskHandle, guard: DiskGuard): DiskHandle {
  const live = (): void => {
    if (guard.signal.aborted) throw new Error(`disk ${handle.serial} has no power`);
  };
  const spend = async (bytes: number): Promise<void> => {
    const speed = guard.bytesPerSecond();
    if (speed) await guard.sleep((bytes / speed) * 1000, guard.signal);
    live();
  };
  return {
    serial: handle.serial,
    sizeBytes: handle.sizeBytes,
    fd: handle.fd,
    async read(position, length) {
      live();
      await spend(length);
      return handle.read(position, length);
    },
    async write(position, bytes) {
      live();
      await spend(bytes.length);
      const admitted = guard.admit(bytes.length);
      await handle.write(position, bytes.subarray(0, admitted));
      guard.wrote(admitted);
      live();
    },
    async discard() {
      live();
      return handle.discard();
    },
    async flush() {
      live();
      await handle.flush();
      live();
    },
    async close() {
      const late = guard.lateBy();
      if (late) await guard.sleep(late, guard.signal);
      await handle.close();
    },
  };
}

export const guardDisk = (disk: AgentDisk, guard: DiskGuard): AgentDisk => ({
  ...disk,
  open: async () => {
    if (guard.signal.aborted) throw new Error(`disk ${disk.serial} has no power`);
    return guardHandle(await disk.open(), guard);
  },
});
