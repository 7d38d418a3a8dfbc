/** Time as the power activities have it, so that a test may hold it in its hand. */
import { pause } from './context.js';

export interface Clock {
  /** Milliseconds since 1970, never running backwards: a corrected wall clock must not stretch a lease. */
  now(): number;
  /** Rejects with the cancellation when the activity is cancelled meanwhile. */
  pause(ms: number): Promise<void>;
  /** @returns what takes the call back */
  after(ms: number, call: () => void): () => void;
}

export const activityClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  pause,
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
