/** The packets a transfer sends its blocks in, used again and again: nothing is allocated for a block. */
import type { TransferTerms } from './options.js';
import { writeData } from './packet.js';

export interface DataPackets {
  /** Bytes `from` to `to` of `source` as the block's packet; it is overwritten two windows later. */
  fill(block: number, source: Buffer, from: number, to: number): Buffer;
}

/**
 * A packet that the kernel did not take at once still waits in the socket, in order. Two windows later it has left: the client has
 * acknowledged what was sent behind it.
 */
export function createDataPackets({ blockSize, windowSize }: Pick<TransferTerms, 'blockSize' | 'windowSize'>): DataPackets {
  const ring: (Buffer | undefined)[] = Array.from({ length: 2 * windowSize });
  return {
    fill(block, source, from, to) {
      // The last block is shorter, and the only one of its length.
      if (to - from < blockSize) return writeData(Buffer.allocUnsafe(4 + to - from), block, source, from, to);
      const packet = (ring[block % ring.length] ??= Buffer.allocUnsafeSlow(4 + blockSize));
      return writeData(packet, block, source, from, to);
    },
  };
}
