/** WS-Man's one path over HTTP, a connection a request. */
import { createHttpOnce, type NoAnswer, type Timeouts } from '../http-once.js';
import type { Trust } from '../trust.js';

/** Bytes of an answer; the largest real one, of an enumeration, is far below. */
export const LARGEST_ANSWER = 256 * 1024;

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5000, requestMs: 8000, methodMs: 20_000, tries: 3, pauseMs: 1000 };

export type HttpOutcome = { readonly kind: 'answer'; readonly status: number; readonly challenge: string | null; readonly body: string } | NoAnswer;

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
export function createConnection({ origin, timeouts, trust = null }: { origin: string; timeouts: Timeouts; trust?: Trust | null }): Connection {
  const send = createHttpOnce({ origin, timeouts, trust, largestAnswer: LARGEST_ANSWER });
  return {
    async send({ body, authorization, signal }) {
      const headers = { 'content-type': 'application/soap+xml; charset=utf-8', ...(authorization !== null && { authorization }) };
      const answer = await send({ path: WSMAN_PATH, method: 'POST', headers, body, signal });
      if (answer.kind !== 'answer') return answer;
      const challenge = answer.headers['www-authenticate'] ?? null;
      return { kind: 'answer', status: answer.status, challenge: Array.isArray(challenge) ? challenge.join(', ') : challenge, body: answer.body };
    },
  };
}
