/** A clock that stands still while anything can be done, and then jumps to the next thing that waits. */
import type { Clock } from '../../../src/power/caller.js';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly call: () => void;
}

export class VirtualTime implements Clock {
  #now = Date.parse('2026-11-30T12:00:00.000Z');
  #order = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }
  after(ms: number, call: () => void): () => void {
    const timer = { at: this.#now + ms, order: this.#order++, call };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Until `work` is settled. @throws when nothing waits any more, and when it takes longer than a (virtual) day */
  async run<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = work.finally(() => void (isSettled = true));
    settled.catch(() => undefined);
    const end = this.#now + 86_400_000;
    for (;;) {
      // Everything that can be done without a clock is done: promises, and the SQLite file, which answers at once.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isSettled) return settled;
      const next = [...this.#timers].sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (!next || next.at > end) throw new Error(next ? 'it goes on for ever' : 'it waits for nothing');
      this.#timers.delete(next);
      this.#now = next.at;
      next.call();
    }
  }
}
