import { setTimeout as sleep } from 'node:timers/promises';

/** What a test waits for that another process, socket or thread brings about: looked for, never slept for. */
const FIRST_MS = 5;
const MOST_MS = 100;

/**
 * Looks until what is looked for is there; a look that throws has not found it.
 * The limit only ends a test that would never end: it is far beyond what a laden machine needs.
 * @returns what was found @throws with `what`, and what was seen last
 */
export async function until<Found>(what: string, look: () => Found | null | undefined | false | Promise<Found | null | undefined | false>, seconds = 60): Promise<Found> {
  const end = Date.now() + seconds * 1000;
  let last: unknown;
  for (let waitMs = FIRST_MS; Date.now() < end; waitMs = Math.min(MOST_MS, waitMs * 1.5)) {
    try {
      const found = await look();
      if (found) return found;
      last = found;
    } catch (error) {
      last = error;
    }
    await sleep(waitMs);
  }
  throw new Error(`not seen within ${seconds} s: ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`);
}
