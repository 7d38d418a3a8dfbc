/**
 * Writes an image so that a disk with unproven bytes never boots: its first MiB, with the partition table, is kept back and
 * written only when the digest was found right. Until then the disk begins with zeros.
 */
import { createHash } from 'node:crypto';
import { MetalflowError } from '../domain/errors.js';
import { MIB } from './actions/action.js';
import type { DiskHandle } from '../contracts/agent-machine.js';

const HEAD_BYTES = MIB;

export interface ImageWriter {
  /** Bytes accepted so far. */
  readonly written: number;
  write(chunk: Buffer): Promise<void>;
  /** SHA-256 of what was accepted, hex. Ends the writing. */
  digest(): string;
  /** Writes the head and flushes. */
  seal(): Promise<void>;
}

/** @throws image_too_large from write, before a byte beyond `unpackedBytes` reaches the disk */
export async function createImageWriter(disk: DiskHandle, image: { url: string; unpackedBytes: number }): Promise<ImageWriter> {
  const head = Buffer.alloc(Math.min(HEAD_BYTES, image.unpackedBytes));
  const hash = createHash('sha256');
  let written = 0;
  await blankHead(disk);
  return {
    get written() {
      return written;
    },
    async write(chunk) {
      if (written + chunk.length > image.unpackedBytes) throw new MetalflowError('image_too_large', { url: image.url, limit: image.unpackedBytes });
      hash.update(chunk);
      const inHead = Math.max(0, Math.min(chunk.length, head.length - written));
      chunk.copy(head, written, 0, inHead);
      if (inHead < chunk.length) await disk.write(written + inHead, chunk.subarray(inHead));
      written += chunk.length;
    },
    digest: () => hash.digest('hex'),
    async seal() {
      // Everything else first: a power cut in between must not leave a table over half an image.
      await disk.flush();
      await disk.write(0, head);
      await disk.flush();
    },
  };
}

/** Zeros where firmware and kernels look for a partition table. */
export async function blankHead(disk: DiskHandle): Promise<void> {
  await disk.write(0, Buffer.alloc(Math.min(HEAD_BYTES, disk.sizeBytes)));
  await disk.flush();
}
