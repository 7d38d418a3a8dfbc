/** Waits with a limit. */
import { within } from '../../src/boot/patience.js';

test('who is not waited for any more is told so; who answered in time is not', async () => {
  const clock: (() => void)[] = [];
  const timers = { after: (_ms: number, call: () => void) => { clock.push(call); return () => {}; } };
  const signals: AbortSignal[] = [];
  const late = within(1500, (signal) => { signals.push(signal); return new Promise<never>(() => {}); }, timers);
  expect(await within(1500, async (signal) => { signals.push(signal); return 'answer'; }, timers)).toBe('answer');
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  clock[0]!();
  await expect(late).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
});
