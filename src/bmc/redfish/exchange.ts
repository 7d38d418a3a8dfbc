/** Redfish's requests over HTTP, a connection each. */
import { createHttpOnce, type HttpOnceDeps, type NoAnswer, type OneRequest, type Timeouts } from '../http-once.js';

/** Bytes of an answer; a ComputerSystem with all its OEM parts stays far below. */
export const LARGEST_ANSWER = 1024 * 1024;

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5000, requestMs: 10_000, methodMs: 20_000, tries: 3, pauseMs: 1000 };

export interface HttpAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** By lower-case name; of a repeated header, the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

export type HttpOutcome = HttpAnswer | NoAnswer;

export interface Exchange {
  send(request: OneRequest): Promise<HttpOutcome>;
}

export function createExchange(deps: Omit<HttpOnceDeps, 'largestAnswer'>): Exchange {
  const send = createHttpOnce({ ...deps, largestAnswer: LARGEST_ANSWER });
  return {
    async send(request) {
      const answer = await send(request);
      if (answer.kind !== 'answer') return answer;
      return { ...answer, headers: Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value])) };
    },
  };
}
