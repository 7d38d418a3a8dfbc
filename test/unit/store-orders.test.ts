/** The ledger: what makes "once" true. */
import type { OrderReport } from '../../src/contracts/order.js';
import type { FenceRef } from '../../src/contracts/store.js';
import type { OrderState } from '../../src/domain/actions.js';
import { grantAfter } from '../../src/store/orders.js';
import { REBOOT, StoreBench, type Booted } from '../support/store-bench.js';

const DONE: OrderReport = { result: 'succeeded', message: 'wiped' };
const FAILED: OrderReport = { result: 'failed', message: 'no such disk', exit: 1 };

let bench: StoreBench;
let ref: FenceRef;
let node: Booted;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(async () => {
  await bench.clean();
  ref = await bench.begin('reprovision');
  node = await bench.boot(ref);
  await bench.mail();
});
afterAll(() => bench.close());

/** Posted, and taken by the node. */
async function taken(title = 'wipe'): Promise<string> {
  const { orderId } = await bench.post(ref, node.bootAttempt, { title });
  await bench.store.orderDesk.consume(node.session, orderId);
  return orderId;
}
const { report, result } = {
  report: (orderId: string, what: OrderReport = DONE): Promise<string> => bench.store.orderDesk.report(node.session, orderId, what),
  result: (orderId: string) => bench.store.orders.result('7', orderId),
};

describe('which grant an action gets next', () => {
  const boot = { first: { sameBoot: true, sameFence: true }, again: { sameBoot: false, sameFence: true }, afterReset: { sameBoot: false, sameFence: false } };
  type Expected = 'same' | 'again' | 'order_closed';
  const rows: readonly [OrderState, taken: boolean, keyof typeof boot, retried: boolean, Expected][] = [
    // The same boot: the order stands, whatever its state.
    ['queued', false, 'first', false, 'same'], ['consumed', true, 'first', false, 'same'], ['reported', true, 'first', false, 'same'], ['unknown', true, 'first', false, 'same'],
    ['cancelled', false, 'first', false, 'same'], ['cancelled', true, 'first', false, 'same'],
    // Another boot of the same fence: done is done, and what may be done is not done again.
    ['reported', true, 'again', false, 'same'], ['unknown', true, 'again', false, 'same'], ['cancelled', true, 'again', false, 'same'], ['cancelled', false, 'again', false, 'again'],
    ['queued', false, 'again', false, 'order_closed'], ['consumed', true, 'again', false, 'order_closed'],
    // A new attested boot after a reset.
    ['reported', true, 'afterReset', false, 'again'], ['unknown', true, 'afterReset', false, 'again'], ['cancelled', true, 'afterReset', false, 'again'], ['cancelled', false, 'afterReset', false, 'again'],
    ['queued', false, 'afterReset', false, 'order_closed'], ['consumed', true, 'afterReset', false, 'order_closed'],
    // A person's retry grants what is unknown, and nothing else.
    ['unknown', true, 'first', true, 'again'], ['unknown', true, 'again', true, 'again'], ['unknown', true, 'afterReset', true, 'again'],
    ['queued', false, 'first', true, 'same'], ['consumed', true, 'first', true, 'same'], ['reported', true, 'first', true, 'same'], ['reported', true, 'again', true, 'same'],
    ['consumed', true, 'again', true, 'order_closed'], ['cancelled', true, 'again', true, 'same'],
  ];
  test.each(rows)('%s (taken: %s), %s boot, retried: %s → %s', (state, wasTaken, when, retried, expected) => {
    const last = { state, grant_no: 3, title: 'wipe', consumed_at: wasTaken ? '2026-11-30T12:00:00.000Z' : null };
    const grant = (): unknown => grantAfter(last, { ...boot[when], retried });
    if (expected === 'same') expect(grant()).toEqual({ kind: 'same' });
    else if (expected === 'again') expect(grant()).toEqual({ kind: 'new', grant: 4 });
    else expect(grant).toThrow(expect.objectContaining({ code: expected }));
  });
  test('an action that was never ordered gets the first grant, retried or not', () => {
    for (const retried of [false, true]) expect(grantAfter(undefined, { sameBoot: false, sameFence: false, retried })).toEqual({ kind: 'new', grant: 1 });
  });
});

describe('an order', () => {
  test('posted again in the same boot is the same order, whatever became of it', async () => {
    const first = await bench.post(ref, node.bootAttempt);
    expect(first.grant).toBe(1);
    expect(await bench.post(ref, node.bootAttempt)).toEqual(first);
    await bench.store.orderDesk.consume(node.session, first.orderId);
    expect(await bench.post(ref, node.bootAttempt)).toEqual(first);
    await report(first.orderId);
    expect(await bench.post(ref, node.bootAttempt)).toEqual(first);
    expect((await bench.store.nodes.run('7', ref.run))?.orders).toHaveLength(1);
  });
  test('posted by two at once is one order', async () => {
    const [one, other] = await Promise.all([bench.post(ref, node.bootAttempt), bench.post(ref, node.bootAttempt)]);
    expect(one).toEqual(other);
  });
  test('is offered until it is taken, and never again', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt);
    const { orderDesk } = bench.store;
    for (let poll = 0; poll < 2; poll++) expect(await orderDesk.next(node.session)).toMatchObject({ orderId, title: 'wipe', destructive: true, grant: 1, run: ref.run, timeoutSeconds: 600 });
    await orderDesk.consume(node.session, orderId);
    expect(await orderDesk.next(node.session)).toBeNull();
    await bench.post(ref, node.bootAttempt);
    expect(await orderDesk.next(node.session)).toBeNull();
    expect(await orderDesk.held(node.session, orderId)).toMatchObject({ orderId });
    await report(orderId);
    expect([await orderDesk.next(node.session), await orderDesk.held(node.session, orderId)]).toEqual([null, null]);
  });
  test('is taken once: the same session gets the same answer, another none', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt);
    const { orderDesk } = bench.store;
    const answer = await orderDesk.consume(node.session, orderId);
    expect(answer).toEqual({ orderId, consumedAt: '2026-11-30T12:00:00.000Z', deadlineAt: '2026-11-30T12:10:00.000Z' });
    bench.pass(30);
    expect(await orderDesk.consume(node.session, orderId)).toEqual(answer);
    const other = { ...node.session, id: 'another-session-of-the-same-boot' };
    await expect(orderDesk.consume(other, orderId)).rejects.toMatchObject({ code: 'order_closed', details: { state: 'consumed' } });
    expect(await orderDesk.held(other, orderId)).toBeNull();
  });
  test('that two sessions reach for at once is taken by one', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt);
    const ends = await Promise.allSettled(['a', 'b'].map((id) => bench.store.orderDesk.consume({ ...node.session, id }, orderId)));
    expect(ends.map((end) => end.status).sort()).toEqual(['fulfilled', 'rejected']);
  });
  test('of another boot is neither offered nor given', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt);
    const stranger = { ...node.session, bootAttempt: 'another' };
    expect(await bench.store.orderDesk.next(stranger)).toBeNull();
    await expect(bench.store.orderDesk.consume(stranger, orderId)).rejects.toMatchObject({ code: 'order_closed' });
    expect(await bench.store.orderDesk.next({ ...node.session, bootAttempt: null })).toBeNull();
  });
  test('taken marks the run as having destroyed something, when it is destructive', async () => {
    const gentle = await bench.post(ref, node.bootAttempt, { title: 'reboot', action: REBOOT, destructive: false });
    await bench.store.orderDesk.consume(node.session, gentle.orderId);
    const fierce = await taken();
    expect(await bench.store.runs.close('7', ref.run, { end: 'cancelled', failure: null, destroyed: false }, ref)).toMatchObject({ destroyed: true });
    expect(await result(fierce)).toMatchObject({ kind: 'cancelled' });
  });
  test('is posted only for a boot that has attested', async () => {
    const { bootAttempt } = await bench.store.attempts.open(ref);
    await bench.store.boot.recordBootSeen(bootAttempt);
    await expect(bench.post(ref, bootAttempt)).rejects.toMatchObject({ code: 'attempt_unattested' });
    expect((await bench.store.nodes.run('7', ref.run))?.orders).toEqual([]);
  });
});

describe('what raises the grant', () => {
  test('a new attested boot after a reset does', async () => {
    await report(await taken());
    ref = await bench.reset(ref);
    await expect(bench.post(ref, node.bootAttempt)).rejects.toMatchObject({ code: 'attempt_superseded' });
    node = await bench.boot(ref);
    expect(await bench.post(ref, node.bootAttempt)).toMatchObject({ grant: 2 });
    expect(await bench.journal()).toContain('wipe: granted again (grant 2) for a new attested boot');
  });
  test('another boot of the same run does not: what was reported is done', async () => {
    const orderId = await taken();
    await report(orderId);
    node = await bench.boot(ref);
    expect(await bench.post(ref, node.bootAttempt)).toEqual({ orderId, grant: 1 });
    expect(await bench.store.orderDesk.next(node.session)).toBeNull();
  });
  test('another boot does for what was offered and never taken', async () => {
    const offered = await bench.post(ref, node.bootAttempt);
    const late = node.session;
    node = await bench.boot(ref);
    // The agent of the former boot, whose session was good a moment ago.
    await expect(bench.store.orderDesk.consume(late, offered.orderId)).rejects.toMatchObject({ code: 'order_closed' });
    const again = await bench.post(ref, node.bootAttempt);
    expect(again.grant).toBe(2);
    expect(await bench.store.orderDesk.next(node.session)).toMatchObject({ orderId: again.orderId });
  });
  test('another boot does not for what was taken and not reported: a person has to say', async () => {
    const orderId = await taken();
    node = await bench.boot(ref);
    // The same order, unknown, is what the run finds again; nothing is on offer.
    expect(await bench.post(ref, node.bootAttempt)).toEqual({ orderId, grant: 1 });
    expect(await result(orderId)).toMatchObject({ kind: 'unknown' });
    expect(await bench.store.orderDesk.next(node.session)).toBeNull();
    expect(await bench.post(ref, node.bootAttempt, { grantUnknown: 'ann' })).toMatchObject({ grant: 2 });
  });
  test("a person's retry of an unknown order does, and is journalled with the person's name", async () => {
    await taken();
    bench.pass(61);
    await bench.store.orders.passDeadlines(60);
    expect(await bench.post(ref, node.bootAttempt, { grantUnknown: 'ann' })).toMatchObject({ grant: 2 });
    const line = (await bench.store.nodes.journal('7', 10)).find(({ text }) => text.includes('granted again'));
    expect(line).toMatchObject({ text: 'wipe: granted again (grant 2) on retry', by: 'ann' });
  });
  test('a retry of an order that is not unknown does not', async () => {
    const orderId = await taken();
    expect(await bench.post(ref, node.bootAttempt, { grantUnknown: 'ann' })).toEqual({ orderId, grant: 1 });
  });
});

describe('a report (G1)', () => {
  test('is kept and completes the waiting activity exactly once', async () => {
    const orderId = await taken();
    expect(await bench.store.orders.attach(ref, orderId, 'task-token')).toBeNull();
    expect(await report(orderId)).toBe('taken');
    expect(await bench.mail()).toEqual([{ kind: 'complete', taskToken: 'task-token', payload: { kind: 'reported', report: DONE } }]);
    const journalled = (await bench.journal()).length;
    for (const again of [DONE, FAILED]) expect(await report(orderId, again)).toBe('repeated');
    expect(await result(orderId)).toEqual({ kind: 'reported', report: DONE });
    expect(await bench.mail()).toEqual([]);
    expect(await bench.journal()).toHaveLength(journalled);
  });
  test('sent twice at once is taken once', async () => {
    const orderId = await taken();
    await bench.store.orders.attach(ref, orderId, 'task-token');
    expect((await Promise.all([report(orderId), report(orderId)])).sort()).toEqual(['repeated', 'taken']);
    expect(await bench.mail()).toHaveLength(1);
  });
  test('that came before anybody waited is there for the one who attaches, and for every later one', async () => {
    const orderId = await taken();
    await report(orderId, FAILED);
    expect(await bench.mail()).toEqual([]);
    for (const token of ['one', 'two']) expect(await bench.store.orders.attach(ref, orderId, token)).toEqual({ kind: 'reported', report: FAILED });
  });
  test('completes the newest try of the activity: an older token is nobody any more', async () => {
    const orderId = await taken();
    await bench.store.orders.attach(ref, orderId, 'try-1');
    await bench.store.orders.attach(ref, orderId, 'try-2');
    await report(orderId);
    expect(await bench.mail()).toEqual([expect.objectContaining({ taskToken: 'try-2' })]);
  });
  test('that comes after its time ran out changes nothing, and is journalled', async () => {
    const orderId = await taken();
    await bench.store.orders.attach(ref, orderId, 'task-token');
    for (let heard = 0; heard < 12; heard++) {
      bench.pass(50);
      await bench.store.orderDesk.progress(node.session, orderId, { done: heard, total: 100, unit: '%' });
    }
    bench.pass(1);
    expect(await bench.store.orders.passDeadlines(60)).toBe(1);
    expect(await bench.mail()).toEqual([{ kind: 'complete', taskToken: 'task-token', payload: { kind: 'timed-out', seconds: 600 } }]);
    expect(await report(orderId)).toBe('late');
    expect(await result(orderId)).toEqual({ kind: 'timed-out', seconds: 600 });
    expect(await bench.mail()).toEqual([]);
    expect((await bench.journal()).at(-1)).toBe('wipe: a late report (succeeded) changes nothing: wiped');
  });
  test('of an earlier action does not touch the one that is in hand', async () => {
    const first = await taken('first');
    await report(first);
    const second = await taken('second');
    await report(first, FAILED);
    expect([await result(first), await result(second)]).toEqual([{ kind: 'reported', report: DONE }, null]);
  });
  test('of an order that was never taken is kept out, and said', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt);
    expect(await report(orderId)).toBe('late');
    expect(await result(orderId)).toBeNull();
    expect(await bench.store.orderDesk.next(node.session)).toMatchObject({ orderId });
  });
  test('wakes the deliverer of the same process', async () => {
    const orderId = await taken();
    const before = bench.woken;
    await report(orderId);
    expect(bench.woken).toBe(before + 1);
  });
});

describe('an order whose outcome is unknown', () => {
  async function unknown(): Promise<string> {
    const orderId = await taken();
    await bench.store.orders.attach(ref, orderId, 'task-token');
    bench.pass(61);
    expect(await bench.store.orders.passDeadlines(60)).toBe(1);
    expect(await bench.mail()).toEqual([{ kind: 'complete', taskToken: 'task-token', payload: { kind: 'unknown', since: '2026-11-30T12:00:00.000Z' } }]);
    return orderId;
  }
  test('tells the run when its report comes after all', async () => {
    const orderId = await unknown();
    expect(await report(orderId)).toBe('taken');
    expect(await bench.mail()).toEqual([{ kind: 'signal-run', workflowId: ref.workflowId, name: 'orderReported', payload: { orderId } }]);
    expect(await result(orderId)).toEqual({ kind: 'reported', report: DONE });
    expect(await report(orderId, FAILED)).toBe('repeated');
  });
  test('is resolved by a person, once, and journalled', async () => {
    const orderId = await unknown();
    await bench.store.orders.resolveAsDone(ref, orderId, 'ann');
    expect(await result(orderId)).toMatchObject({ kind: 'reported', report: { result: 'succeeded', message: 'ann said that it was done' } });
    expect(await report(orderId, FAILED)).toBe('repeated');
    expect((await bench.store.nodes.journal('7', 1))[0]).toMatchObject({ text: 'wipe: resolved as done', by: 'ann' });
  });
  test('that was reported meanwhile is not resolved over the report', async () => {
    const orderId = await unknown();
    await report(orderId, FAILED);
    await bench.store.orders.resolveAsDone(ref, orderId, 'ann');
    expect(await result(orderId)).toEqual({ kind: 'reported', report: FAILED });
    expect(await bench.journal()).not.toContain('wipe: resolved as done');
  });
  test('goes on when its agent is heard again: a half wipe is worse than a whole one', async () => {
    const orderId = await unknown();
    expect(await bench.store.orderDesk.progress(node.session, orderId, { done: 1, total: 2, unit: '%' })).toBe('on');
  });
});

describe('old orders hide nothing and come back never (G3)', () => {
  test('whatever the former runs left, the open run is offered its own', async () => {
    for (const end of ['done', 'failed', 'cancelled'] as const) {
      await taken(`of a run that is ${end}`);
      await bench.post(ref, node.bootAttempt, { title: `left by a run that is ${end}` });
      await bench.store.runs.close('7', ref.run, { end, failure: null, destroyed: false }, ref);
      expect(await bench.store.orderDesk.next(node.session)).toBeNull();
      ref = await bench.begin('reprovision');
      node = await bench.boot(ref);
    }
    expect(await bench.store.orderDesk.next(node.session)).toBeNull();
    const { orderId } = await bench.post(ref, node.bootAttempt);
    expect(await bench.store.orderDesk.next(node.session)).toMatchObject({ orderId, grant: 1 });
  });
  test('a reboot that was taken is not offered to the boot it made', async () => {
    const { orderId } = await bench.post(ref, node.bootAttempt, { title: 'reboot', action: REBOOT, destructive: false });
    await bench.store.orderDesk.consume(node.session, orderId);
    const fresh = await bench.attest();
    expect(await bench.store.orderDesk.next(fresh.session)).toBeNull();
    await expect(bench.store.orderDesk.consume(fresh.session, orderId)).rejects.toMatchObject({ code: 'order_closed' });
  });
});
