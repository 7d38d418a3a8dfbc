/** Deadlines live in the store, because a paused activity's timers stop; and silence is never taken for an outcome. */
import type { KyselyPlugin } from 'kysely';
import type { FenceRef } from '../../src/contracts/store.js';
import { createOrderLedger } from '../../src/store/orders.js';
import { StoreBench, type Booted } from '../support/store-bench.js';

let bench: StoreBench;
let ref: FenceRef;
let node: Booted;
let orderId: string;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(async () => {
  await bench.clean();
  ref = await bench.begin('reprovision');
  node = await bench.boot(ref);
  ({ orderId } = await bench.post(ref, node.bootAttempt));
  await bench.store.orders.attach(ref, orderId, 'task-token');
  await bench.mail();
});
afterAll(() => bench.close());

const take = (): Promise<unknown> => bench.store.orderDesk.consume(node.session, orderId);
const progress = (done: number, total = 100): Promise<string> => bench.store.orderDesk.progress(node.session, orderId, { done, total, unit: '%' });
const pass = (): Promise<number> => bench.store.orders.passDeadlines(60);
const result = () => bench.store.orders.result('7', orderId);

describe('an order that nobody took', () => {
  test('waits for as long as it is offered, and is void afterwards', async () => {
    bench.pass(300);
    expect(await pass()).toBe(0);
    bench.pass(1);
    expect(await pass()).toBe(1);
    expect(await result()).toEqual({ kind: 'not-taken', seconds: 300 });
    await expect(take()).rejects.toMatchObject({ code: 'order_closed' });
    expect(await bench.mail()).toEqual([{ kind: 'complete', taskToken: 'task-token', payload: { kind: 'not-taken', seconds: 300 } }]);
    expect(await pass()).toBe(0);
  });
});

describe('an agent that took an order', () => {
  test('and was heard of within the limit is not silent', async () => {
    await take();
    for (let beat = 0; beat < 5; beat++) {
      bench.pass(59);
      expect(await pass()).toBe(0);
      expect(await progress(beat)).toBe('on');
    }
  });
  test('and fell silent leaves the outcome unknown since its last sign', async () => {
    await take();
    bench.pass(30);
    await progress(10);
    bench.pass(61);
    expect(await pass()).toBe(1);
    expect(await result()).toEqual({ kind: 'unknown', since: '2026-11-30T12:00:30.000Z' });
    expect((await bench.journal()).at(-1)).toBe('wipe: outcome unknown');
  });
  test('and fell silent before its time ran out is unknown, not timed out: it may have done it', async () => {
    await take();
    bench.pass(10_000);
    expect(await pass()).toBe(1);
    expect(await result()).toMatchObject({ kind: 'unknown' });
  });
  test('and is heard of past its time is timed out', async () => {
    await take();
    bench.pass(600);
    await progress(99);
    expect(await pass()).toBe(0);
    bench.pass(1);
    expect(await pass()).toBe(1);
    expect(await result()).toEqual({ kind: 'timed-out', seconds: 600 });
    expect(await progress(100)).toBe('stop');
  });
  test('and speaks while its silence is being judged is not silent', async () => {
    await take();
    bench.pass(61);
    // The sign of life lands between the look and the judgement.
    let spoken = false;
    const speaks: KyselyPlugin = {
      transformQuery: ({ node: query }) => query,
      transformResult: async ({ result: rows }) => {
        if (!spoken && rows.rows.some((row) => row['id'] === orderId && row['state'] === 'consumed')) {
          spoken = true;
          // Waits for the connection that this very look still holds: not awaited, it is the next to have it.
          void progress(50);
        }
        return rows;
      },
    };
    const ledger = createOrderLedger({ db: bench.db.withPlugin(speaks), now: () => bench.now(), changed: () => undefined });
    expect(await ledger.passDeadlines(60)).toBe(0);
    expect(spoken).toBe(true);
    expect(await result()).toBeNull();
    expect(await progress(51)).toBe('on');
  });
});

describe('an order whose activity is paused in Temporal', () => {
  const offered = async () => bench.store.orderDesk.next(node.session);
  test('is not offered, and its time to be taken stands still until it is let go', async () => {
    await bench.store.orders.withhold(orderId, true);
    expect(await offered()).toBeNull();
    bench.pass(10_000);
    expect(await pass()).toBe(0);
    await bench.store.orders.withhold(orderId, false);
    expect(await offered()).toMatchObject({ orderId });
    expect(await pass()).toBe(0);
    bench.pass(10_000);
    expect(await pass()).toBe(1);
    expect(await result()).toMatchObject({ kind: 'not-taken' });
  });
  test('goes on when the agent has taken it', async () => {
    await take();
    await bench.store.orders.withhold(orderId, true);
    expect(await progress(10)).toBe('on');
  });
});

describe('heartbeats', () => {
  const wanted = () => bench.store.orders.wantHeartbeat(new Date(bench.now().getTime() - 20_000));
  test('are wanted by open orders whose activity waits, also while nobody took them, once a third of the timeout', async () => {
    expect(await wanted()).toEqual([]);
    bench.pass(21);
    expect(await wanted()).toEqual([{ orderId, taskToken: 'task-token', withheld: false, details: { order: orderId, state: 'queued' } }]);
    expect(await wanted()).toEqual([]);
  });
  test.each([
    [50, 100, { progress: '50 %', done: 50, total: 100, unit: '%' }],
    [1, 3, { progress: '33 %', done: 1, total: 3, unit: '%' }],
    [7, 0, { progress: '7 %', done: 7, total: 0, unit: '%' }],
  ])('carry the progress %d of %d', async (done, total, details) => {
    await take();
    await progress(done, total);
    bench.pass(21);
    expect((await wanted())[0]?.details).toMatchObject({ state: 'consumed', ...details });
  });
  test('are not wanted by an order that is over', async () => {
    await take();
    await bench.store.orderDesk.report(node.session, orderId, { result: 'succeeded', message: '' });
    bench.pass(21);
    expect(await wanted()).toEqual([]);
  });
});

describe('an order that Temporal cancelled', () => {
  test('is void, and its agent is told at its next progress', async () => {
    await take();
    await bench.store.orders.cancelByTemporal(orderId);
    expect(await progress(1)).toBe('stop');
    expect(await result()).toEqual({ kind: 'cancelled', why: 'cancelled in Temporal' });
    expect(await bench.mail()).toEqual([]);
  });
  test('after it was reported stays reported', async () => {
    await take();
    await bench.store.orderDesk.report(node.session, orderId, { result: 'succeeded', message: '' });
    await bench.store.orders.cancelByTemporal(orderId);
    expect(await result()).toMatchObject({ kind: 'reported' });
  });
  test('and is unknown to the store is nothing', async () => {
    await expect(bench.store.orders.cancelByTemporal('never-drawn')).resolves.toBeUndefined();
  });
});

test('a run that cancels its orders cancels its own only, and leaves what was reported', async () => {
  await take();
  await bench.store.orderDesk.report(node.session, orderId, { result: 'succeeded', message: '' });
  const open = await bench.post(ref, node.bootAttempt, { title: 'second' });
  await bench.store.orders.cancelOpen(ref, 'stopped by ann');
  expect([await result(), await bench.store.orders.result('7', open.orderId)]).toMatchObject([{ kind: 'reported' }, { kind: 'cancelled', why: 'stopped by ann' }]);
});

describe('a poll that waits for an order', () => {
  const LONG = 60_000;
  test('ends when one is queued', async () => {
    await take();
    const waiting = bench.store.orderDesk.waitForChange(node.session, LONG, new AbortController().signal);
    const next = await bench.post(ref, node.bootAttempt, { title: 'second' });
    await waiting;
    expect(await bench.store.orderDesk.next(node.session)).toMatchObject({ orderId: next.orderId });
  });
  test('ends when its client goes away', async () => {
    await take();
    const gone = new AbortController();
    const waiting = bench.store.orderDesk.waitForChange(node.session, LONG, gone.signal);
    gone.abort();
    await expect(waiting).resolves.toBeUndefined();
  });
  test('ends by itself', async () => {
    await take();
    await expect(bench.store.orderDesk.waitForChange(node.session, 1, new AbortController().signal)).resolves.toBeUndefined();
  });
});

describe('the outbox', () => {
  test('keeps what could not be delivered, tries it later and later, at most 30 s apart, and in order', async () => {
    await take();
    await bench.store.orderDesk.report(node.session, orderId, { result: 'succeeded', message: '' });
    const [row] = await bench.store.outbox.due(10);
    const delays: number[] = [];
    for (let tries = 0; tries < 9; tries++) {
      await bench.store.outbox.failed(row!.id, tries);
      let waited = 0;
      while ((await bench.store.outbox.due(10)).length === 0 && waited < 60) {
        bench.pass(0.25);
        waited += 0.25;
      }
      delays.push(waited);
    }
    expect(delays).toEqual([0.25, 0.5, 1, 2, 4, 8, 16, 30, 30]);
    expect(await bench.store.outbox.pending()).toBe(1);
    await bench.store.outbox.delivered(row!.id, 'absent');
    expect([await bench.store.outbox.pending(), await bench.store.outbox.due(10)]).toEqual([0, []]);
  });
});
