/** Downloads under way, by who asked: one address must not take every connection and its buffers from the rest of a fleet. */
import { MetalflowError } from '../../domain/errors.js';

/** A node needs two or three at once; the rest is for nodes that share an address behind a relay nobody told us of. */
const MOST_OF_ONE = 128;

export interface Downloads {
  /** Waits for `work`, which counts as the sender's until it ends. @throws rate_limited, and what `work` throws */
  during<T>(sender: string, work: () => Promise<T>): Promise<T>;
}

export function createDownloads(mostOfOne = MOST_OF_ONE): Downloads {
  const underWay = new Map<string, number>();
  return {
    async during(sender, work) {
      const before = underWay.get(sender) ?? 0;
      if (before >= mostOfOne) throw new MetalflowError('rate_limited');
      underWay.set(sender, before + 1);
      try {
        return await work();
      } finally {
        const left = underWay.get(sender)! - 1;
        if (left === 0) underWay.delete(sender);
        else underWay.set(sender, left);
      }
    },
  };
}
