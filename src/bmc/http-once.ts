/**
 * One HTTP request over one connection. BMCs keep few sockets, close idle ones early and AMT closes after a 401; and a reused socket
 * that was just closed could not be told from a lost command. So every request gets its own.
 */
import { Client, errors } from 'undici';
import { createConnector } from './connector.js';
import type { Trust } from './trust.js';
import { WireProblem, wordsOf, type WireProblemCode } from './wire-problem.js';

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

export interface OneRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Of the origin, beginning with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** null for none. */
  readonly body: string | null;
  readonly signal: AbortSignal;
}

export interface OneAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export type NoAnswer =
  /** No connection, or none that is trusted: not one byte of the request left. */
  | { readonly kind: 'not-connected'; readonly code: WireProblemCode; readonly why: string }
  /** The connection ended, or time did, before the whole answer was there. */
  | { readonly kind: 'lost'; readonly why: string }
  /** What came is no HTTP, or too much of it. */
  | { readonly kind: 'unreadable'; readonly why: string };

export interface HttpOnceDeps {
  /** `https://host:port`, or `http://host:port` where the address says so. */
  readonly origin: string;
  readonly timeouts: Pick<Timeouts, 'connectMs' | 'requestMs'>;
  /** Whose certificate is trusted; null for plain HTTP. */
  readonly trust: Trust | null;
  /** Bytes. */
  readonly largestAnswer: number;
}

export function createHttpOnce({ origin, timeouts, trust, largestAnswer }: HttpOnceDeps): (request: OneRequest) => Promise<OneAnswer | NoAnswer> {
  function failed(error: unknown, connected: boolean, tooLate: boolean): NoAnswer {
    if (error instanceof WireProblem) return { kind: 'not-connected', code: error.code, why: error.message };
    if (error instanceof errors.ResponseExceededMaxSizeError) return { kind: 'unreadable', why: `its answer is larger than ${largestAnswer} bytes` };
    if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) return { kind: 'unreadable', why: 'its answer is no HTTP' };
    const why = tooLate ? `no whole answer within ${timeouts.requestMs} ms` : wordsOf(error);
    return connected ? { kind: 'lost', why } : { kind: 'not-connected', code: 'bmc_unreachable', why };
  }

  return async ({ method, path, headers, body, signal }) => {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeouts.requestMs);
    const ends = AbortSignal.any([signal, deadline.signal]);
    const client = new Client(origin, { connect: createConnector({ trust, connectMs: timeouts.connectMs, signal: ends }), maxResponseSize: largestAnswer, pipelining: 1 });
    let connected = false;
    client.once('connect', () => void (connected = true));
    // undici would connect again for a request that it had not begun to write; one send is one connection.
    client.once('disconnect', (_origin, _targets, error) => void client.destroy(error).catch(() => undefined));
    try {
      const answer = await client.request({ path, method, reset: true, headers, body, signal: ends });
      return { kind: 'answer', status: answer.statusCode, headers: answer.headers, body: await answer.body.text() };
    } catch (error) {
      return failed(error, connected, deadline.signal.aborted);
    } finally {
      clearTimeout(timer);
      await client.destroy().catch(() => undefined);
    }
  };
}
