/**
 * One HTTP request over one connection. AMT closes after a 401 and keeps few sockets, and a reused one that it has
 * just closed could not be told from a lost command; so every request gets its own.
 */
import { Client, errors } from 'undici';
import { createConnector } from '../connector.js';
import type { Trust } from '../trust.js';
import { WireProblem, wordsOf, type WireProblemCode } from '../wire-problem.js';

/** Bytes of an answer; the largest real one, of an enumeration, is far below. */
export const LARGEST_ANSWER = 256 * 1024;

export interface Timeouts {
  /** Milliseconds until a connection stands, TLS included. */
  readonly connectMs: number;
  /** Milliseconds of one request from its start to the last byte of its answer, however it drips. */
  readonly requestMs: number;
  /** Milliseconds of one method of the Bmc, tries and pauses included. With the wait for a turn (capped-factory.ts) less than an activity may be silent (limit `activityTry`). */
  readonly methodMs: number;
  /** How often a request is tried that surely had no effect or is a read: a sleeping ME swallows what wakes it. */
  readonly tries: number;
  readonly pauseMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5000, requestMs: 8000, methodMs: 20_000, tries: 3, pauseMs: 1000 };

export type HttpOutcome =
  | { readonly kind: 'answer'; readonly status: number; readonly challenge: string | null; readonly body: string }
  /** No connection, or none that is trusted: not one byte of the request left. */
  | { readonly kind: 'not-connected'; readonly code: WireProblemCode; readonly why: string }
  /** The connection ended, or time did, before the whole answer was there. */
  | { readonly kind: 'lost'; readonly why: string }
  /** What came is no HTTP, or too much of it. */
  | { readonly kind: 'unreadable'; readonly why: string };

export interface HttpRequest {
  readonly body: string;
  readonly authorization: string | null;
  readonly signal: AbortSignal;
}

export interface Connection {
  send(request: HttpRequest): Promise<HttpOutcome>;
}

export const WSMAN_PATH = '/wsman';

/**
 * @param deps.origin `http://host:port`, or `https:` with a trust
 * @param deps.trust null or absent for plain HTTP
 */
export function createConnection(deps: { origin: string; timeouts: Timeouts; trust?: Trust | null }): Connection {
  const { origin, timeouts, trust = null } = deps;
  return {
    async send({ body, authorization, signal }) {
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeouts.requestMs);
      const ends = AbortSignal.any([signal, deadline.signal]);
      const client = new Client(origin, { connect: createConnector({ trust, connectMs: timeouts.connectMs, signal: ends }), maxResponseSize: LARGEST_ANSWER, pipelining: 1 });
      let connected = false;
      client.once('connect', () => void (connected = true));
      // undici would connect again for a request that it had not begun to write; one send is one connection.
      client.once('disconnect', (_origin, _targets, error) => void client.destroy(error).catch(() => undefined));
      try {
        const answer = await client.request({
          path: WSMAN_PATH,
          method: 'POST',
          reset: true,
          headers: { 'content-type': 'application/soap+xml; charset=utf-8', ...(authorization !== null && { authorization }) },
          body,
          signal: ends,
        });
        const text = await answer.body.text();
        const challenge = answer.headers['www-authenticate'] ?? null;
        return { kind: 'answer', status: answer.statusCode, challenge: Array.isArray(challenge) ? challenge.join(', ') : challenge, body: text };
      } catch (error) {
        return failed(error, connected, deadline.signal.aborted, timeouts);
      } finally {
        clearTimeout(timer);
        await client.destroy().catch(() => undefined);
      }
    },
  };
}

function failed(error: unknown, connected: boolean, tooLate: boolean, timeouts: Timeouts): HttpOutcome {
  if (error instanceof WireProblem) return { kind: 'not-connected', code: error.code, why: error.message };
  if (error instanceof errors.ResponseExceededMaxSizeError) return { kind: 'unreadable', why: `its answer is larger than ${LARGEST_ANSWER} bytes` };
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) return { kind: 'unreadable', why: 'its answer is no HTTP' };
  const why = tooLate ? `no whole answer within ${timeouts.requestMs} ms` : wordsOf(error);
  return connected ? { kind: 'lost', why } : { kind: 'not-connected', code: 'bmc_unreachable', why };
}
