import { startHeartbeat, type StopReason } from '../../src/agent/heartbeat.js';
import type { Answer } from '../../src/agent/api.js';
import type { ProgressResponse } from '../../src/contracts/agent-api.js';

const ON: Answer<ProgressResponse> = { kind: 'ok', value: { go: 'on' } };

/** A clock that a test turns by hand, one sleep at a time; all that a turn sets off has happened when it returns. */
function handClock(): { sleep: (ms: number, signal?: AbortSignal) => Promise<void>; turn(): Promise<number> } {
  let wake: (() => void) | null = null;
  let asked = 0;
  return {
    sleep: (ms, signal) => new Promise((resolve) => {
      asked = ms;
      wake = () => {
        signal?.removeEventListener('abort', resolve as () => void);
        resolve();
      };
      signal?.addEventListener('abort', resolve as () => void);
    }),
    async turn() {
      wake?.();
      await new Promise(setImmediate);
      return asked;
    },
  };
}

function begin(answers: Answer<ProgressResponse>[] = []) {
  const clock = handClock();
  const sent: number[] = [];
  const stops: StopReason[] = [];
  const heartbeat = startHeartbeat({
    send: async ({ done }) => {
      sent.push(done);
      return answers.shift() ?? ON;
    },
    onStop: (why) => stops.push(why), sleep: clock.sleep, pace: { progressMs: 1000, heartbeatMs: 10_000 },
  });
  return { ...clock, heartbeat, sent, stops };
}
const news = (done: number): { done: number; total: number; unit: string } => ({ done, total: 100, unit: 'bytes' });

it('news are sent at most once a second, the latest of them', async () => {
  const { heartbeat, sent, turn } = begin();
  await turn();
  for (const done of [1, 2, 3]) heartbeat.update(news(done));
  expect(await turn()).toBe(1000);
  for (const done of [4, 5]) heartbeat.update(news(done));
  await turn();
  await heartbeat.end();
  expect(sent).toEqual([0, 3, 5]);
});

it('without news a sign of life is sent every ten seconds', async () => {
  const { heartbeat, sent, turn } = begin();
  const sentAfter: number[] = [];
  for (let second = 0; second <= 20; second += 1) {
    await turn();
    sentAfter.push(sent.length);
  }
  await heartbeat.end();
  expect([0, 9, 10, 19, 20].map((second) => sentAfter[second])).toEqual([1, 1, 2, 2, 3]);
});

it.each<[StopReason, Answer<ProgressResponse>]>([
  ['stop', { kind: 'ok', value: { go: 'stop' } }],
  ['revoked', { kind: 'unauthorized', code: 'token_unknown', message: '' }],
  ['gone', { kind: 'refused', status: 404, code: 'order_not_found', message: '' }],
])('%s ends it, once', async (why, answer) => {
  const { heartbeat, sent, stops, turn } = begin([answer]);
  await turn();
  await turn();
  await heartbeat.end();
  expect([stops, sent.length]).toEqual([[why], 1]);
});

it('a plane that cannot be reached stops nothing', async () => {
  const { heartbeat, stops, sent, turn } = begin([{ kind: 'unavailable', why: 'down' }]);
  await turn();
  heartbeat.update(news(1));
  await turn();
  await heartbeat.end();
  expect([stops, sent]).toEqual([[], [0, 1]]);
});
