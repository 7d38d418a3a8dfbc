/** Instants as NetBox has them: microseconds, and never the same twice, so that every write has an ETag of its own. */
export type Stamps = () => string;

export function createStamps(now: () => Date): Stamps {
  let last = 0;
  return () => {
    last = Math.max(now().getTime() * 1000, last + 1);
    const whole = new Date(Math.floor(last / 1000)).toISOString();
    return `${whole.slice(0, -1)}${String(last % 1000).padStart(3, '0')}Z`;
  };
}

/** The weak ETag that NetBox 4.6 makes of last_updated, in Python's isoformat. */
export const etagOf = (lastUpdated: string): string => `W/"${lastUpdated.replace(/Z$/, '+00:00')}"`;
