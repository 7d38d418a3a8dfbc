/** A disk behind an open file: a block device, or the plain file of a simulated disk. */
import type { FileHandle } from 'node:fs/promises';
import type { DiskHandle } from '../contracts/agent-machine.js';

export interface DiskHandleDeps {
  readonly handle: FileHandle;
  readonly serial: string;
  readonly sizeBytes: number;
  /** The device's own way to forget everything; false when it has none. */
  readonly discard?: () => Promise<boolean>;
}

export function createDiskHandle({ handle, serial, sizeBytes, discard = async () => false }: DiskHandleDeps): DiskHandle {
  return {
    serial,
    sizeBytes,
    fd: handle.fd,
    async read(position, length) {
      const bytes = Buffer.allocUnsafe(length);
      for (let done = 0; done < length; ) {
        const { bytesRead } = await handle.read(bytes, done, length - done, position + done);
        if (bytesRead === 0) throw new Error(`disk ${serial} ends at byte ${position + done}`);
        done += bytesRead;
      }
      return bytes;
    },
    async write(position, bytes) {
      // A file would grow, and a simulated disk must not.
      if (position < 0 || position + bytes.length > sizeBytes) throw new Error(`bytes ${position}+${bytes.length} are outside disk ${serial} of ${sizeBytes} bytes`);
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
        done += bytesWritten;
      }
    },
    discard,
    flush: () => handle.datasync(),
    close: () => handle.close(),
  };
}
