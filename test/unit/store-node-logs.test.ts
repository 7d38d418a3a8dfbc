/** What nodes said: by node and run, bounded, read on from a cursor. */
import type { NodeLogLine } from '../../src/contracts/node-logs.js';
import { createNodeLogs } from '../../src/store/node-logs.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const said = (text: string, extra: Partial<NodeLogLine> = {}): NodeLogLine => ({
  deviceId: '7', at: bench.now().toISOString(), receivedAt: bench.now().toISOString(), severity: 6, facility: 3, host: 'hook', program: 'agent', text, ...extra,
});
const texts = async (query: Partial<Parameters<typeof bench.store.logs.read>[1]> = {}, deviceId = '7'): Promise<string[]> =>
  (await bench.store.logs.read(deviceId, { limit: 100, ...query })).lines.map(({ text }) => text);

test('a line belongs to the run that was open when it came, also when it is written after its end', async () => {
  await bench.store.logs.keep([said('before')]);
  bench.pass(1);
  const ref = await bench.begin();
  bench.pass(1);
  const last = said('last words');
  bench.pass(1);
  await bench.store.runs.close('7', ref.run, { end: 'failed', failure: null, destroyed: false }, ref);
  bench.pass(1);
  await bench.store.logs.keep([last, said('after')]);
  expect(await texts()).toEqual(['before', 'last words', 'after']);
  expect(await texts({ run: ref.run })).toEqual(['last words']);
});

test('a node is never shown the lines of another', async () => {
  await bench.store.logs.keep([said('of seven'), said('of eight', { deviceId: '8' })]);
  expect([await texts(), await texts({}, '8')]).toEqual([['of seven'], ['of eight']]);
});

test('without a beginning the newest are given, oldest first; a cursor goes on where the last page ended', async () => {
  for (let n = 1; n <= 5; n++) {
    await bench.store.logs.keep([said(`line ${n}`)]);
    bench.pass(1);
  }
  const page = await bench.store.logs.read('7', { limit: 2 });
  expect(page.lines.map(({ text }) => text)).toEqual(['line 4', 'line 5']);
  expect(await texts({ after: page.lines[0]!.id })).toEqual(['line 5']);
  expect(await bench.store.logs.read('7', { limit: 2, after: page.after! })).toEqual({ lines: [], after: page.after });
  expect(await texts({ since: page.lines[0]!.receivedAt, limit: 1 })).toEqual(['line 4']);
});

test('a node that talks without end keeps its newest lines, and costs no other node one', async () => {
  const logs = createNodeLogs({ db: bench.db, now: () => bench.now(), linesPerNode: 3, linesPerTrim: 2 });
  await logs.keep([said('quiet', { deviceId: '8' })]);
  for (let n = 1; n <= 9; n++) await logs.keep([said(`${n}`)]);
  const kept = (await logs.read('7', { limit: 100 })).lines.map(({ text }) => text);
  expect(kept.slice(-3)).toEqual(['7', '8', '9']);
  expect(kept.length).toBeLessThanOrEqual(5);
  expect(await texts({}, '8')).toEqual(['quiet']);
});

test('lines are forgotten with the rest of the past', async () => {
  await bench.store.logs.keep([said('old')]);
  bench.pass(100);
  await bench.store.logs.keep([said('new')]);
  await bench.store.forget(new Date(bench.now().getTime() - 50_000));
  expect(await texts()).toEqual(['new']);
});
