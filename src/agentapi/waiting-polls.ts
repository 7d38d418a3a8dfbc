/** Long polls that wait for an order: bounded per node, and given up when their node hangs up. */
import type { ServerResponse } from 'node:http';
import type { Order } from '../contracts/order.js';
import type { AgentSession, OrderDesk } from '../contracts/agent-desk.js';

/** One is what an agent needs; the second covers a connection that died without a word. */
const MOST_PER_NODE = 2;

export interface WaitingPolls {
  /** A signal that aborts when the node hangs up, or when newer polls of the same node take the place. */
  enter(deviceId: string, response: ServerResponse): AbortSignal;
  /** Polls that wait now. */
  count(): number;
}

export function createWaitingPolls(): WaitingPolls {
  const polls = new Map<string, AbortController[]>();

  const leave = (deviceId: string, poll: AbortController): void => {
    const left = (polls.get(deviceId) ?? []).filter((other) => other !== poll);
    if (left.length > 0) polls.set(deviceId, left);
    else polls.delete(deviceId);
    poll.abort();
  };
  return {
    enter: (deviceId, response) => {
      const poll = new AbortController();
      const waiting = polls.get(deviceId) ?? [];
      polls.set(deviceId, [...waiting, poll]);
      // The newest is the one that surely has somebody at its other end.
      if (waiting.length >= MOST_PER_NODE) leave(deviceId, waiting[0]!);
      response.once('close', () => leave(deviceId, poll));
      return poll.signal;
    },
    count: () => [...polls.values()].reduce((sum, waiting) => sum + waiting.length, 0),
  };
}

/**
 * The session's order, at the latest after `ms`; null when there is none by then or `signal` aborts.
 * @param recheck asked after each wake, since a new boot revokes the session of a poll that still waits; throws what it finds
 */
export async function waitForOrder(deps: { orders: OrderDesk; session: AgentSession; ms: number; signal: AbortSignal; recheck: () => Promise<AgentSession> }): Promise<Order | null> {
  const { orders, signal } = deps;
  const until = performance.now() + deps.ms;
  let session = deps.session;
  for (;;) {
    const left = Math.max(0, Math.ceil(until - performance.now()));
    const round = new AbortController();
    // Listening begins before looking: an order queued in between would otherwise wait for the next one.
    const changed = left > 0 ? orders.waitForChange(session, left, AbortSignal.any([signal, round.signal])) : Promise.resolve();
    // It is awaited below, but not when looking fails first.
    changed.catch(() => undefined);
    try {
      const order = await orders.next(session);
      if (order || left === 0 || signal.aborted) return order;
      await changed;
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    } finally {
      round.abort();
    }
    if (signal.aborted) return null;
    session = await deps.recheck();
  }
}
