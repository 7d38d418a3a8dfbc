/** Waiting, injectable: tests pass one that runs a thousand times faster and writes down what was asked. */
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const realSleep: Sleep = async (ms, signal) => {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    // Aborted: the caller looks at its signal.
  }
};

/** Delays that double from `firstMs` up to `mostMs`. */
export function growingDelay(firstMs: number, mostMs: number): { next(): number; reset(): void } {
  let current = firstMs;
  return {
    next() {
      const now = current;
      current = Math.min(current * 2, mostMs);
      return now;
    },
    reset() {
      current = firstMs;
    },
  };
}
