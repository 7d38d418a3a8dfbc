/** How often one sender may do something: fixed windows of a minute, in bounded memory. */
import { MetalflowError } from '../domain/errors.js';

export interface SenderLimit {
  /** @throws rate_limited when the sender has used its window up; counts nothing */
  check(sender: string): void;
  count(sender: string): void;
}

const WINDOW_MS = 60_000;

/**
 * @param deps.perMinute uses of one sender in a window
 * @param deps.mostSenders senders remembered; past that the window starts anew for all, so a flood of addresses costs no memory
 */
export function createSenderLimit(deps: { perMinute: number; now: () => Date; mostSenders?: number }): SenderLimit {
  const { perMinute, now, mostSenders = 10_000 } = deps;
  let uses = new Map<string, number>();
  let startedAt = now().getTime();

  const current = (): Map<string, number> => {
    const at = now().getTime();
    // A clock that was set back must not keep a window open for ever.
    if (at - startedAt >= WINDOW_MS || at < startedAt) {
      uses = new Map();
      startedAt = at;
    }
    return uses;
  };
  return {
    check: (sender) => {
      if ((current().get(sender) ?? 0) >= perMinute) throw new MetalflowError('rate_limited');
    },
    count: (sender) => {
      const window = current();
      if (!window.has(sender) && window.size >= mostSenders) window.clear();
      window.set(sender, (window.get(sender) ?? 0) + 1);
    },
  };
}
