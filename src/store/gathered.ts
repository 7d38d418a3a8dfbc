/** Many small writes as few commits: a fleet that boots at once must not wait for a disk flush a node. */

const MOST_AT_ONCE = 500;

/**
 * What is given while a write is under way goes into the next one, so a lone item waits for nothing.
 * @param write all of them, or none: when it throws, each giver is told
 */
export function gathered<T>(write: (items: readonly T[]) => Promise<void>, most = MOST_AT_ONCE): (item: T) => Promise<void> {
  let waiting: { readonly item: T; readonly done: () => void; readonly failed: (error: unknown) => void }[] = [];
  let isWriting = false;

  async function writeAll(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) {
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

  return (item) =>
    new Promise((done, failed) => {
      waiting.push({ item, done, failed });
      if (!isWriting) void writeAll();
    });
}
