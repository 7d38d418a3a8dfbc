/** Waits with a limit: a boot plane whose store hangs must still answer a firmware that gives up after seconds. */
import { MetalflowError } from '../domain/errors.js';

/** Timers that a test can drive by hand. */
export interface Timers {
  /** Calls once after `ms`; the returned function takes it back. */
  after(ms: number, call: () => void): () => void;
  /** Milliseconds of a clock that is never set. */
  now(): number;
}

export const realTimers: Timers = {
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
  now: () => performance.now(),
};

/**
 * The answer of `ask`, when it comes within `ms`. `ask` may throw at once or reject; its signal is aborted when nobody waits for it
 * any more.
 * @throws store_unavailable when it does not come in time, else what `ask` throws
 */
export async function within<T>(ms: number, ask: (signal: AbortSignal) => Promise<T>, timers: Pick<Timers, 'after'> = realTimers): Promise<T> {
  const gaveUp = new AbortController();
  let cancel = (): void => {};
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(ms, () => {
      const error = new MetalflowError('store_unavailable', { why: `no answer within ${ms} ms` });
      gaveUp.abort(error);
      reject(error);
    });
  });
  try {
    return await Promise.race([ask(gaveUp.signal), late]);
  } finally {
    cancel();
  }
}
