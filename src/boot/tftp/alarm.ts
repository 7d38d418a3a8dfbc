/** A limit that moves with each answer. */
import type { Timers } from '../patience.js';

export interface Alarm {
  /** Rings in `ms`, instead of when it was set to before. */
  set(ms: number): void;
  off(): void;
}

/** One timer goes on for as long as the limit moves away from it: setting a new one for each block would cost as much as the block. */
export function createAlarm(timers: Timers, ring: () => void): Alarm {
  let due: number | null = null;
  let timer: { readonly at: number; readonly cancel: () => void } | null = null;

  function watch(at: number): void {
    timer = {
      at,
      cancel: timers.after(at - timers.now(), () => {
        timer = null;
        if (due === null) return;
        if (timers.now() < due) return watch(due);
        due = null;
        ring();
      }),
    };
  }

  return {
    set(ms) {
      due = timers.now() + ms;
      if (timer && timer.at <= due) return;
      timer?.cancel();
      watch(due);
    },
    off() {
      due = null;
      timer?.cancel();
      timer = null;
    },
  };
}
