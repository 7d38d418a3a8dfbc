/** Many small writes as few commits: a fleet that boots at once must not wait for a disk flush a node. */
import { MetalflowError } from '../domain/errors.js';

const MOST_AT_ONCE = 500;
/** Far more than a fleet has under way at once; beyond it the store is behind, and who asks is told so. */
const MOST_WAITING = 5000;

interface Waiting<T> {
  readonly item: T;
  readonly signal: AbortSignal | undefined;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * What is given in one turn of the event loop goes into one write, and what is given while it is under way into the next.
 * @param write all of them, or none: when it throws, each giver is told
 * @returns gives an item; one whose signal is aborted before its batch is begun is withdrawn, and never written. @throws store_unavailable when too many wait
 */
export function gathered<T>(write: (items: readonly T[]) => Promise<void>, most = MOST_AT_ONCE, mostWaiting = MOST_WAITING): (item: T, signal?: AbortSignal) => Promise<void> {
  let waiting: Waiting<T>[] = [];
  let isWriting = false;

  function dropWithdrawn(): void {
    const withdrawn = waiting.filter(({ signal }) => signal?.aborted);
    if (withdrawn.length === 0) return;
    waiting = waiting.filter(({ signal }) => !signal?.aborted);
    for (const { signal, failed } of withdrawn) failed(signal!.reason);
  }

  async function writeAll(): Promise<void> {
    for (dropWithdrawn(); waiting.length > 0; dropWithdrawn()) {
      const batch = waiting.slice(0, most);
      waiting = waiting.slice(most);
      try {
        await write(batch.map(({ item }) => item));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    isWriting = false;
  }

  return (item, signal) =>
    new Promise((done, failed) => {
      if (signal?.aborted) throw signal.reason;
      if (waiting.length >= mostWaiting) dropWithdrawn();
      if (waiting.length >= mostWaiting) throw new MetalflowError('store_unavailable', { why: `${waiting.length} writes wait for it` });
      waiting.push({ item, signal, done, failed });
      if (isWriting) return;
      isWriting = true;
      // SQLite answers within the turn that asks: begun at once, each write would be done before the next request is read.
      setImmediate(() => void writeAll());
    });
}
