/**
 * One HTTP request over one connection. AMT closes after a 401 and keeps few sockets, and a reused one that it has
 * just closed could not be told from a lost command; so every request gets its own.
 */
import { Client, errors } from 'undici';

/** Bytes of an answer; the largest real one, of an enumeration, is far below. */
export const LARGEST_ANSWER = 256 * 1024;

export interface Timeouts {
  /** Milliseconds until a connection stands. */
  readonly connectMs: number;
  /** Milliseconds of one request from its start to the last byte of its answer, however it drips. */
  readonly requestMs: number;
  /** Milliseconds of one method of the Bmc, tries and pauses included. Less than the lease on the BMC (limit `bmcLock`). */
  readonly methodMs: number;
  /** How often a request is tried that surely had no effect or is a read: a sleeping ME swallows what wakes it. */
  readonly tries: number;
  readonly pauseMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5000, requestMs: 10_000, methodMs: 45_000, tries: 3, pauseMs: 1000 };

export type HttpOutcome =
  | { readonly kind: 'answer'; readonly status: number; readonly challenge: string | null; readonly body: string }
  /** No connection: not one byte left. */
  | { readonly kind: 'not-connected'; readonly why: string }
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

/** @param deps.origin `http://host:port`; TLS with a pinned fingerprint will come as another implementation of Connection. */
export function createConnection(deps: { origin: string; timeouts: Timeouts }): Connection {
  const { origin, timeouts } = deps;
  return {
    async send({ body, authorization, signal }) {
      const client = new Client(origin, { connect: { timeout: timeouts.connectMs }, maxResponseSize: LARGEST_ANSWER, pipelining: 1 });
      let connected = false;
      client.once('connect', () => void (connected = true));
      // undici would connect again for a request that it had not begun to write; one send is one connection.
      client.once('disconnect', (_origin, _targets, error) => void client.destroy(error).catch(() => undefined));
      const deadline = AbortSignal.timeout(timeouts.requestMs);
      try {
        const answer = await client.request({
          path: WSMAN_PATH,
          method: 'POST',
          reset: true,
          headers: { 'content-type': 'application/soap+xml; charset=utf-8', ...(authorization !== null && { authorization }) },
          body,
          signal: AbortSignal.any([signal, deadline]),
        });
        const text = await answer.body.text();
        const challenge = answer.headers['www-authenticate'] ?? null;
        return { kind: 'answer', status: answer.statusCode, challenge: Array.isArray(challenge) ? challenge.join(', ') : challenge, body: text };
      } catch (error) {
        return failed(error, connected, deadline.aborted, timeouts);
      } finally {
        await client.destroy().catch(() => undefined);
      }
    },
  };
}

function failed(error: unknown, connected: boolean, tooLate: boolean, timeouts: Timeouts): HttpOutcome {
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
  ABORT_ERR: 'given up',
};

/** Node's and undici's codes in words; an unknown one as it is. */
function wordsOf(error: unknown): string {
  const { code, name, message } = error as { code?: unknown; name?: string; message?: string };
  if (name === 'AbortError' || name === 'TimeoutError') return 'given up: the time for this call is over';
  return (typeof code === 'string' && WORDS[code]) || String(message ?? error).slice(0, 200);
}
