/** A file as a transfer reads it: forward, a window at a time. */
import type { BootFile } from '../files.js';

export interface Reader {
  /**
   * The bytes at once when they are in memory, else a promise of them. It rejects when the file has become shorter.
   * @param length bytes, within the file
   */
  read(offset: number, length: number): Buffer | Promise<Buffer>;
}

/** Read from the disk at once, bytes; a fleet of 512 transfers holds 32 MiB of it. */
const AHEAD = 64 * 1024;

export function createReader(file: Pick<BootFile, 'size' | 'read' | 'bytes'>): Reader {
  let held: { readonly from: number; readonly bytes: Buffer } = { from: 0, bytes: file.bytes ?? Buffer.alloc(0) };

  async function load(offset: number, length: number): Promise<Buffer> {
    const bytes = await file.read(offset, Math.min(Math.max(length, AHEAD), file.size - offset));
    if (bytes.length < length) throw new Error('the file became shorter');
    held = { from: offset, bytes };
    return bytes.subarray(0, length);
  }

  return {
    read(offset, length) {
      const at = offset - held.from;
      return at >= 0 && at + length <= held.bytes.length ? held.bytes.subarray(at, at + length) : load(offset, length);
    },
  };
}
