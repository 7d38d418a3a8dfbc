/** One HTTP exchange of an installed system, repeated while the other side is away. */
import { request, type Agent } from 'undici';
import type { Sleep } from '../sleep.js';

export interface Exchange {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type Answer =
  | { readonly kind: 'answered'; readonly contentType: string; readonly body: Buffer }
  /** It will never be answered with more than this: repeating it is no use. */
  | { readonly kind: 'refused'; readonly status: number; readonly body: string }
  | { readonly kind: 'unanswered'; readonly why: string };

export interface ExchangeOptions {
  readonly agent: Agent;
  readonly signal: AbortSignal;
  readonly sleep: Sleep;
  readonly tries: number;
  readonly everyMs: number;
}

const ANSWER_LIMIT = 1024 * 1024;
const SILENCE_MS = 20_000;

async function readBody(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ANSWER_LIMIT) throw new Error(`an answer of more than ${ANSWER_LIMIT} bytes`);
  }
  return Buffer.concat(chunks);
}

async function exchangeOnce({ method, url, headers, body }: Exchange, { agent, signal }: ExchangeOptions): Promise<Answer> {
  try {
    const answer = await request(url, { method, headers, body, dispatcher: agent, signal, headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS });
    const bytes = await readBody(answer.body);
    if (answer.statusCode >= 200 && answer.statusCode < 300) return { kind: 'answered', contentType: String(answer.headers['content-type'] ?? ''), body: bytes };
    if (answer.statusCode >= 500 || answer.statusCode === 429) return { kind: 'unanswered', why: `HTTP ${answer.statusCode}` };
    return { kind: 'refused', status: answer.statusCode, body: bytes.toString('utf8').slice(0, 500) };
  } catch (error) {
    // The message of a URL that does not parse may hold the code in its query: only the kind of error is told.
    return { kind: 'unanswered', why: (error as NodeJS.ErrnoException).code ?? (error as Error).name };
  }
}

/** Repeats 5xx, 429 and broken connections `tries` times; anything else is the answer. Never throws; ends at once when `signal` aborts. */
export async function exchange(what: Exchange, options: ExchangeOptions): Promise<Answer> {
  for (let left = options.tries; ; left--) {
    const answer = await exchangeOnce(what, options);
    if (answer.kind !== 'unanswered' || left <= 1 || options.signal.aborted) return answer;
    await options.sleep(options.everyMs, options.signal);
  }
}
