/**
 * One HTTP request over one connection. BMCs keep few sockets and close idle ones early, and a reused socket that was just
 * closed could not be told from a lost command; so every request gets its own.
 */
import { type buildConnector, Client, errors } from 'undici';

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
  /** No connection: not one byte of the request left. */
  | { readonly kind: 'not-connected'; readonly why: string }
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
  /** How the connection is made and whose certificate is trusted; undici's own way when absent. */
  readonly connect?: buildConnector.connector;
}

export function createExchange({ origin, timeouts, connect }: ExchangeDeps): Exchange {
  return {
    async send({ method, path, headers, body, signal }) {
      const client = new Client(origin, { connect: connect ?? { timeout: timeouts.connectMs }, maxResponseSize: LARGEST_ANSWER, pipelining: 1 });
      let connected = false;
      client.once('connect', () => void (connected = true));
      // undici would connect again for a request that it had not begun to write; one send is one connection.
      client.once('disconnect', (_origin, _targets, error) => void client.destroy(error).catch(() => undefined));
      const deadline = AbortSignal.timeout(timeouts.requestMs);
      try {
        const answer = await client.request({ path, method, reset: true, headers, body, signal: AbortSignal.any([signal, deadline]) });
        const text = await answer.body.text();
        const first = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]));
        return { kind: 'answer', status: answer.statusCode, headers: first, body: text };
      } catch (error) {
        return failed(error, connected, deadline.aborted, timeouts);
      } finally {
        await client.destroy().catch(() => undefined);
      }
    },
  };
}

function failed(error: unknown, connected: boolean, tooLate: boolean, timeouts: Timeouts): Exclude<HttpOutcome, HttpAnswer> {
  if (error instanceof errors.ResponseExceededMaxSizeError) return { kind: 'unreadable', why: `its answer is larger than ${LARGEST_ANSWER} bytes` };
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) return { kind: 'unreadable', why: 'its answer is no HTTP' };
  const why = tooLate ? `no whole answer within ${timeouts.requestMs} ms` : wordsOf(error);
  return { kind: connected ? 'lost' : 'not-connected', why };
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_SOCKET: 'connection closed before the answer',
};

function wordsOf(error: unknown): string {
  const { code, name, message } = error as { code?: unknown; name?: string; message?: string };
  if (name === 'AbortError' || name === 'TimeoutError') return 'given up: the time for this call is over';
  return (typeof code === 'string' && WORDS[code]) || String(message ?? error).slice(0, 200);
}
