/** A boot file that was served: the run of its attempt hears of it, once. */
import { join } from 'node:path';
import SqliteFile from 'libsql';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

describe('the boot file', () => {
  test('however often it is served in an attempt, the run hears of it once', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    expect(await bench.store.attempts.bootSeen(ref, bootAttempt)).toBe(false);
    await Promise.all([1, 2, 3].map(() => bench.store.boot.recordBootSeen(bootAttempt)));
    await bench.store.boot.recordBootSeen(bootAttempt);
    expect(await bench.mail()).toEqual([{ kind: 'signal-run', workflowId: ref.workflowId, name: 'bootSeen', payload: { bootAttempt } }]);
    expect(await bench.store.attempts.bootSeen(ref, bootAttempt)).toBe(true);
  });
  test('that was given up before it was written is no boot: the node was given its disk', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    const impatient = new AbortController();
    // Another process writes meanwhile, for longer than the node can wait.
    const other = new SqliteFile(join(bench.dir, 'store.db'));
    other.exec('begin immediate');
    const recording = bench.store.boot.recordBootSeen(bootAttempt, impatient.signal);
    await new Promise((resolve) => setImmediate(resolve));
    impatient.abort(new Error('gave up'));
    other.exec('rollback');
    other.close();
    await recording;
    expect(await bench.mail()).toEqual([]);
    expect(await bench.store.attempts.bootSeen(ref, bootAttempt)).toBe(false);
  });
  test('of a closed attempt, or of one that nobody opened, is no boot', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    await bench.store.attempts.open(ref);
    await bench.store.boot.recordBootSeen(bootAttempt);
    await bench.store.boot.recordBootSeen('never-opened');
    expect(await bench.mail()).toEqual([]);
  });
});
