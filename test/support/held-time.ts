import { until } from './until.js';

/** Limits of the product that run out when the test says so, and not while a laden machine is at a step that has to succeed. */

export interface HeldTime {
  /** What has no more than these milliseconds left runs out, before this returns. */
  pass(ms: number): void;
}

/** `setTimeout` stands still but for what is let pass; sockets, processes, the clock, intervals, promised sleeps and `until` go on. */
export async function whileTimeStands<Result>(work: (time: HeldTime) => Promise<Result>): Promise<Result> {
  jest.useFakeTimers({ doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'] });
  try {
    return await work({ pass: (ms) => void jest.advanceTimersByTime(ms) });
  } finally {
    jest.useRealTimers();
  }
}

/** What becomes of a request whose limit passes once it was `heard`, and not before. */
export const outOfTime = <Result>(limitMs: number, ask: () => Promise<Result>, heard: () => boolean): Promise<Result> =>
  whileTimeStands(async (time) => {
    const asked = ask();
    await until('it is heard', heard);
    time.pass(limitMs);
    return asked;
  });
