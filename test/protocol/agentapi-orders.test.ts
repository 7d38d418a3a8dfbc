import { once } from 'node:events';
import { MetalflowError } from '../../src/domain/errors.js';
import type { AgentAction } from '../../src/contracts/order.js';
import { closeAgentPlanes, declareWithRun, openAgentPlane, testNode, type AgentPlane, type Reply } from '../support/agent-api-server.js';

afterEach(closeAgentPlanes);

const node = testNode(7);
const other = testNode(8);
const disk = { serial: 'S1' };
const WRITE_IMAGE: AgentAction = { name: 'write-image', disk, url: 'http://10.0.0.1:7080/assets/a.raw', sha256: 'ab'.repeat(32), sizeBytes: 100, compression: 'none', unpackedBytes: 100 };
const SUCCEEDED = { result: 'succeeded', message: 'done' };

async function openWithAgent(run = 3): Promise<{ plane: AgentPlane; token: string }> {
  const plane = await openAgentPlane();
  declareWithRun(plane.desk, node, run);
  return { plane, token: (await plane.admit(node)).token };
}

/** Starts a long poll and resolves once the desk listens for it. */
async function startPoll(plane: AgentPlane, token: string, signal?: AbortSignal): Promise<{ reply: Promise<Reply> }> {
  const waiting = once(plane.desk.changes, 'waiting');
  const reply = plane.send('/v1/orders/next?wait=30', { token, signal });
  reply.catch(() => undefined);
  await waiting;
  return { reply };
}

describe('the next order', () => {
  test('a queued order is offered as it is, and offering does not take it', async () => {
    const { plane, token } = await openWithAgent();
    const order = plane.desk.queue('7', 'write', WRITE_IMAGE);
    for (const round of [1, 2]) expect({ round, ...(await plane.send('/v1/orders/next?wait=0', { token })) }).toMatchObject({ round, status: 200, json: order });
    expect(plane.desk.row(order.orderId).state).toBe('queued');
  });

  test('without an order there is nothing: 204, not an error that would end the agent (G3)', async () => {
    const { plane, token } = await openWithAgent();
    expect(await plane.send('/v1/orders/next?wait=0', { token })).toMatchObject({ status: 204, text: '' });
  });

  test('a long poll wakes when an order is queued', async () => {
    const { plane, token } = await openWithAgent();
    const { reply } = await startPoll(plane, token);
    const order = plane.desk.queue('7', 'reboot');
    expect(await reply).toMatchObject({ status: 200, json: { orderId: order.orderId } });
    expect(plane.desk.waiters()).toBe(0);
  });

  test("another node's order wakes nobody here, and is offered to nobody else", async () => {
    const { plane, token } = await openWithAgent();
    declareWithRun(plane.desk, other);
    const { reply } = await startPoll(plane, token);
    const theirs = plane.desk.queue('8', 'theirs', WRITE_IMAGE);
    const ours = plane.desk.queue('7', 'ours');
    expect((await reply).json.orderId).toBe(ours.orderId);
    expect(await plane.send(`/v1/orders/${theirs.orderId}/consume`, { token, method: 'POST' })).toMatchObject({ status: 404, json: { code: 'order_not_found' } });
    expect(plane.desk.row(theirs.orderId).state).toBe('queued');
  });

  test('an order queued between looking and listening is not missed', async () => {
    const { plane, token } = await openWithAgent();
    const look = plane.desk.orders.next;
    let looks = 0;
    plane.desk.orders.next = async (session) => {
      const found = await look(session);
      looks += 1;
      if (looks === 1) plane.desk.queue('7', 'just now');
      return found;
    };
    expect(await plane.send('/v1/orders/next?wait=30', { token })).toMatchObject({ status: 200, json: { title: 'just now' } });
    expect(looks).toBe(2);
  });

  test('a node that hangs up frees its long poll', async () => {
    const { plane, token } = await openWithAgent();
    const hangUp = new AbortController();
    const { reply } = await startPoll(plane, token, hangUp.signal);
    expect(plane.desk.waiters()).toBe(1);
    const left = once(plane.desk.changes, 'left');
    hangUp.abort();
    await expect(reply).rejects.toThrow();
    await left;
    expect(plane.desk.waiters()).toBe(0);
  });

  test('a node holds two long polls at most: a third ends the oldest with nothing', async () => {
    const { plane, token } = await openWithAgent();
    const first = await startPoll(plane, token);
    const second = await startPoll(plane, token);
    const third = await startPoll(plane, token);
    expect((await first.reply).status).toBe(204);
    const order = plane.desk.queue('7', 'reboot');
    expect((await second.reply).json.orderId).toBe(order.orderId);
    expect((await third.reply).json.orderId).toBe(order.orderId);
  });

  test('the poll of the boot before is ended by a new boot, and is offered nothing of it', async () => {
    const { plane, token } = await openWithAgent();
    const { reply } = await startPoll(plane, token);
    plane.desk.openAttempt('7', 3);
    expect(await reply).toMatchObject({ status: 401, json: { code: 'token_unknown' } });
  });

  test('a store that goes away during a long poll ends it with 503, and frees it', async () => {
    const { plane, token } = await openWithAgent();
    const { reply } = await startPoll(plane, token);
    plane.desk.orders.session = async () => Promise.reject(new MetalflowError('store_unavailable', { why: 'gone' }));
    const { orderId } = plane.desk.queue('7', 'first');
    plane.desk.row(orderId).state = 'cancelled';
    expect(await reply).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
    expect(plane.desk.waiters()).toBe(0);
  });

  test('the newest attempt is served in every order in which runs were opened (G3)', async () => {
    for (const runs of [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]) {
      const plane = await openAgentPlane();
      for (const run of runs) {
        declareWithRun(plane.desk, node, run);
        plane.desk.queue('7', `of run ${run}`);
      }
      const { token, run } = await plane.admit(node);
      expect((await plane.send('/v1/orders/next?wait=0', { token })).json.title).toBe(`of run ${run}`);
      expect(run).toBe(runs[2]);
    }
  });
});

describe('taking an order', () => {
  test('it is taken once; the same agent asking again hears the same', async () => {
    const { plane, token } = await openWithAgent();
    const { orderId } = plane.desk.queue('7', 'write', WRITE_IMAGE);
    const first = await plane.send(`/v1/orders/${orderId}/consume`, { token, body: {} });
    expect(first).toMatchObject({ status: 200, json: { orderId } });
    expect((await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' })).json).toEqual(first.json);
    expect((await plane.send('/v1/orders/next?wait=0', { token })).status).toBe(204);
  });

  test('an order that was taken is not given to the agent of a later session', async () => {
    const { plane, token } = await openWithAgent();
    const { orderId } = plane.desk.queue('7', 'write', WRITE_IMAGE);
    await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' });
    const again = await plane.admit(node);
    expect(await plane.send(`/v1/orders/${orderId}/consume`, { token: again.token, method: 'POST' })).toMatchObject({ status: 409, json: { code: 'order_closed' } });
  });

  test('a cancelled order is closed, and its progress is told to stop', async () => {
    const { plane, token } = await openWithAgent();
    const { orderId } = plane.desk.queue('7', 'write', WRITE_IMAGE);
    const progress = { done: 1, total: 2, unit: 'bytes' };
    await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' });
    expect((await plane.send(`/v1/orders/${orderId}/progress`, { token, body: progress })).json).toEqual({ go: 'on' });
    plane.desk.cancel(orderId);
    expect((await plane.send(`/v1/orders/${orderId}/progress`, { token, body: progress })).json).toEqual({ go: 'stop' });
    expect(await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' })).toMatchObject({ status: 409, json: { code: 'order_closed', details: { state: 'cancelled' } } });
  });

  test('the seed goes only to the hand that took its order', async () => {
    const { plane, token } = await openWithAgent();
    const { orderId } = plane.desk.queue('7', 'seed', { name: 'write-seed', disk, place: 'nocloud' });
    const wipe = plane.desk.queue('7', 'wipe', { name: 'wipe-disk', disk });
    const seedOf = (id: string): Promise<Reply> => plane.send(`/v1/orders/${id}/seed`, { token });
    expect(await seedOf(orderId)).toMatchObject({ status: 404, json: { code: 'order_not_found' } });
    await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' });
    expect(await seedOf(orderId)).toMatchObject({ status: 200, json: { files: [{ path: 'nocloud.txt', content: `${node.systemUuid}-3 http://10.0.0.1:42114`, mode: 0o600 }] }, headers: { 'cache-control': 'no-store' } });
    await plane.send(`/v1/orders/${wipe.orderId}/consume`, { token, method: 'POST' });
    expect((await seedOf(wipe.orderId)).status).toBe(404);
    await plane.send(`/v1/orders/${orderId}/report`, { token, body: SUCCEEDED });
    expect((await seedOf(orderId)).status).toBe(404);
  });
});

describe('reports that come twice or late (G1)', () => {
  const finishes = (plane: AgentPlane): string[] => plane.desk.signals.filter((signal) => signal.startsWith('finished'));
  const take = async (plane: AgentPlane, token: string, title: string): Promise<string> => {
    const { orderId } = plane.desk.queue('7', title);
    expect((await plane.send(`/v1/orders/${orderId}/consume`, { token, method: 'POST' })).status).toBe(200);
    return orderId;
  };
  const report = (plane: AgentPlane, token: string, orderId: string, result = 'succeeded'): Promise<Reply> => plane.send(`/v1/orders/${orderId}/report`, { token, body: { result, message: result } });

  test('the last of three actions reported twice is answered OK twice and finished once', async () => {
    const { plane, token } = await openWithAgent();
    for (const title of ['one', 'two']) await report(plane, token, await take(plane, token, title));
    const three = await take(plane, token, 'three');
    expect(await report(plane, token, three)).toMatchObject({ status: 200, json: { report: 'taken' } });
    expect(await report(plane, token, three)).toMatchObject({ status: 200, json: { report: 'repeated' } });
    expect(finishes(plane)).toEqual(['finished one succeeded', 'finished two succeeded', 'finished three succeeded']);
  });

  test('a report after the time-out is acknowledged and changes nothing', async () => {
    const { plane, token } = await openWithAgent();
    const two = await take(plane, token, 'two');
    plane.desk.timeOut(two);
    expect(await report(plane, token, two)).toMatchObject({ status: 200, json: { report: 'late' } });
    expect(plane.desk.row(two)).toMatchObject({ state: 'cancelled', reports: [{ result: 'succeeded' }] });
    expect(finishes(plane)).toEqual([]);
    expect((await plane.send('/v1/orders/next?wait=0', { token })).status).toBe(204);
  });

  test('a report for an order whose outcome was unknown is taken once', async () => {
    const { plane, token } = await openWithAgent();
    const one = await take(plane, token, 'one');
    plane.desk.lose(one);
    expect((await report(plane, token, one)).json).toEqual({ report: 'taken' });
    expect((await report(plane, token, one)).json).toEqual({ report: 'repeated' });
    expect(plane.desk.signals.filter((signal) => signal.startsWith('known'))).toEqual(['known at last one succeeded']);
  });

  test('an old report, and one that contradicts the first, never move what runs now', async () => {
    const { plane, token } = await openWithAgent();
    const one = await take(plane, token, 'one');
    await report(plane, token, one);
    const two = await take(plane, token, 'two');
    expect((await report(plane, token, one)).json).toEqual({ report: 'repeated' });
    expect((await report(plane, token, one, 'failed')).json).toEqual({ report: 'repeated' });
    expect(plane.desk.row(two).state).toBe('consumed');
    expect(finishes(plane)).toEqual(['finished one succeeded']);
  });

  test('a report for an order that never was is refused for good', async () => {
    const { plane, token } = await openWithAgent();
    expect(await report(plane, token, 'no-such-order')).toMatchObject({ status: 404, json: { code: 'order_not_found' } });
  });
});
