/** Waiting that a power cut ends. */
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after `ms`, or at once when the signal aborts: the caller looks at its signal. Never rejects. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const realSleep: Sleep = (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined);
