/** Ids and secrets drawn by the store. */
import { createHash, randomBytes } from 'node:crypto';

let last = 0;
let count = 0;

/** 26 hex digits that sort by time within a process: 12 of milliseconds, 4 of a counter, 10 random. */
export function newId(now: Date = new Date()): string {
  const at = now.getTime();
  count = at === last ? count + 1 : 0;
  last = at;
  return at.toString(16).padStart(12, '0') + (count & 0xffff).toString(16).padStart(4, '0') + randomBytes(5).toString('hex');
}

/** 256 bits, base64url: session tokens and install codes. */
export const newSecret = (): string => randomBytes(32).toString('base64url');

/** How a secret is stored: SHA-256 hex. It has full entropy, so no salt or stretching is needed. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex');
