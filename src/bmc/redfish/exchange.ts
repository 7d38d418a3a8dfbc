/**
 * One HTTP request over one connection. BMCs keep few sockets and close idle ones early, and a reused socket that was just
 * closed could not be told from a lost command; so every request gets its own.
 */
import { Client, errors } from 'undici';
import { createConnector } from '../connector.js';
import type { Trust } from '../trust.js';
import { WireProblem, wordsOf, type WireProblemCode } from '../wire-problem.js';

/** Bytes of an answer; a ComputerSystem with all its OEM parts stays far below. */
export const LARGEST_ANSWER = 1024 * 1024;

export interface Timeouts {
  /** Milliseconds until a connection stands, TLS included. */
  readonly connectMs: number;
  /** Milliseconds of one request from its start to the last byte of its answer, however it drips. */
  readonly requestMs: number;
  /** Milliseconds of one method of the Bmc, all its requests included. Less than an activity may be silent (limit `activityTry`). */
  readonly methodMs: number;
  /** How often a request is tried that is a read or surely had no effect. */
  readonly tries: number;
  readonly pauseMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5000, requestMs: 10_000, methodMs: 20_000, tries: 3, pauseMs: 1000 };

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Of the origin, beginning with a slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text; null for none. */
  readonly body: string | null;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** By lower-case name; of a repeated header, the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

export type HttpOutcome =
  | HttpAnswer
  /** No connection, or none that is trusted: not one byte of the request left. */
  | { readonly kind: 'not-connected'; readonly code: WireProblemCode; readonly why: string }
  /** The connection ended, or time did, before the whole answer was there. */
  | { readonly kind: 'lost'; readonly why: string }
  /** What came is no HTTP, or too much of it. */
  | { readonly kind: 'unreadable'; readonly why: string };

export interface Exchange {
  send(request: HttpRequest): Promise<HttpOutcome>;
}

export interface ExchangeDeps {
  /** `https://host:port`, or `http://host:port` where the address says so. */
  readonly origin: string;
  readonly timeouts: Timeouts;
  /** Whose certificate is trusted; null for plain HTTP. */
  readonly trust: Trust | null;
}

export function createExchange({ origin, timeouts, trust }: ExchangeDeps): Exchange {
  return {
    async send({ method, path, headers, body, signal }) {
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeouts.requestMs);
      const ends = AbortSignal.any([signal, deadline.signal]);
      const client = new Client(origin, { connect: createConnector({ trust, connectMs: timeouts.connectMs, signal: ends }), maxResponseSize: LARGEST_ANSWER, pipelining: 1 });
      let connected = false;
      client.once('connect', () => void (connected = true));
      // undici would connect again for a request that it had not begun to write; one send is one connection.
      client.once('disconnect', (_origin, _targets, error) => void client.destroy(error).catch(() => undefined));
      try {
        const answer = await client.request({ path, method, reset: true, headers, body, signal: ends });
        const text = await answer.body.text();
        const first = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]));
        return { kind: 'answer', status: answer.statusCode, headers: first, body: text };
      } catch (error) {
        return failed(error, connected, deadline.signal.aborted, timeouts);
      } finally {
        clearTimeout(timer);
        await client.destroy().catch(() => undefined);
      }
    },
  };
}

function failed(error: unknown, connected: boolean, tooLate: boolean, timeouts: Timeouts): Exclude<HttpOutcome, HttpAnswer> {
  if (error instanceof WireProblem) return { kind: 'not-connected', code: error.code, why: error.message };
  if (error instanceof errors.ResponseExceededMaxSizeError) return { kind: 'unreadable', why: `its answer is larger than ${LARGEST_ANSWER} bytes` };
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) return { kind: 'unreadable', why: 'its answer is no HTTP' };
  const why = tooLate ? `no whole answer within ${timeouts.requestMs} ms` : wordsOf(error);
  return connected ? { kind: 'lost', why } : { kind: 'not-connected', code: 'bmc_unreachable', why };
}
