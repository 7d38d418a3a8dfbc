/** The agent plane over HTTP. Every answer is one of five kinds, so that no status or body can surprise the loop. */
import { Agent, request, type Dispatcher } from 'undici';
import { z } from 'zod';
import { ConsumeResponse, ErrorBody, HelloResponse, OrderSeedResponse, ProgressResponse, ReportResponse, type HelloRequest, type ReportRequest } from '../contracts/agent-api.js';
import { Order, type OrderProgress, type OrderReport } from '../contracts/order.js';
import { issuesText } from '../contracts/primitives.js';
import { readJson } from '../domain/json.js';

/**
 * `refused`: said once is enough, sending it again cannot help (G5). `unauthorized`: the token is gone.
 * `unavailable`: 5xx, too busy, no answer in time, or one that cannot be understood; the same again may well work.
 */
export type Answer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly message: string; readonly retryAfterSeconds?: number }
  | { readonly kind: 'unauthorized'; readonly code: string; readonly message: string }
  | { readonly kind: 'unavailable'; readonly why: string };

export interface AgentApi {
  hello(body: HelloRequest): Promise<Answer<HelloResponse>>;
  report(body: ReportRequest): Promise<Answer<ReportResponse>>;
  /** Held open by the server for up to `waitSeconds`. */
  next(token: string, waitSeconds: number): Promise<Answer<Order>>;
  consume(token: string, orderId: string): Promise<Answer<ConsumeResponse>>;
  progress(token: string, orderId: string, progress: OrderProgress): Promise<Answer<ProgressResponse>>;
  reportOrder(token: string, orderId: string, report: OrderReport): Promise<Answer<unknown>>;
  seed(token: string, orderId: string): Promise<Answer<OrderSeedResponse>>;
  close(): Promise<void>;
}

/** Statuses below 500 that say "later", not "no" (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4). */
const LATER = new Set([408, 425, 429]);
/** A report is answered by its status alone: whatever the body says, it was kept. */
const AnyBody = z.unknown();
/** Bytes; the largest answer is a seed of 50 files. */
const MOST_BYTES = 16 * 1024 * 1024;

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`the answer is larger than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A refused attestation says in its body too when to ask again. */
const AnyError = ErrorBody.extend({ retryAfterSeconds: z.number().optional() });

/** The error of a body; an answer that is none of ours still has its status. */
function readError(status: number, text: string, retryAfter: string | undefined): { code: string; message: string; retryAfterSeconds?: number } {
  const json = readJson(text);
  const parsed = AnyError.safeParse(json.kind === 'read' ? json.value : null);
  const seconds = Number(retryAfter ?? (parsed.success ? parsed.data.retryAfterSeconds : undefined));
  return {
    code: parsed.success ? parsed.data.code.slice(0, 60) : `http_${status}`,
    message: parsed.success ? parsed.data.message.slice(0, 500) : '',
    ...(Number.isFinite(seconds) && seconds > 0 && { retryAfterSeconds: seconds }),
  };
}

const reason = (error: unknown): string => (error instanceof Error ? `${(error as NodeJS.ErrnoException).code ?? error.name}: ${error.message}` : String(error)).slice(0, 300);

export interface AgentApiDeps {
  /** `https://agent.example:42114`; a path in front of /v1 is kept. */
  readonly base: string;
  /** PEM of the authority that signed the plane's certificate; the system's own without it. */
  readonly ca?: string;
  /** Ends every request. */
  readonly signal: AbortSignal;
  /** Of one request, without what the server is asked to wait. Default 15 s. */
  readonly timeoutMs?: number;
}

export function createAgentApi({ base, ca, signal, timeoutMs = 15_000 }: AgentApiDeps): AgentApi {
  const dispatcher = new Agent({ connect: { timeout: timeoutMs, ...(ca !== undefined && { ca }) }, connections: 4 });
  const root = base.replace(/\/+$/, '');

  async function call<S extends z.ZodType>(method: 'GET' | 'POST', path: string, schema: S, options: { token?: string; body?: unknown; extraMs?: number } = {}): Promise<Answer<z.infer<S>>> {
    // Not AbortSignal.any: its followers stay with a long-lived signal, and an agent may wait in the menu for weeks.
    const ended = new AbortController();
    const end = (): void => ended.abort(new Error('no answer in time, or the agent ends'));
    const timer = setTimeout(end, timeoutMs + (options.extraMs ?? 0));
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    try {
      const response = await request(`${root}${path}`, {
        method,
        dispatcher,
        signal: ended.signal,
        headersTimeout: 0,
        bodyTimeout: 0,
        headers: {
          accept: 'application/json',
          ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
          ...(options.body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
      });
      return understand(response.statusCode, await readText(response.body), schema, response.headers['retry-after']);
    } catch (error) {
      return { kind: 'unavailable', why: reason(error) };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }

  return {
    hello: (body) => call('POST', '/v1/attest/hello', HelloResponse, { body }),
    report: (body) => call('POST', '/v1/attest/report', ReportResponse, { body }),
    next: (token, waitSeconds) => call('GET', `/v1/orders/next?wait=${waitSeconds}`, Order, { token, extraMs: waitSeconds * 1000 }),
    consume: (token, orderId) => call('POST', `/v1/orders/${orderId}/consume`, ConsumeResponse, { token, body: {} }),
    progress: (token, orderId, body) => call('POST', `/v1/orders/${orderId}/progress`, ProgressResponse, { token, body }),
    reportOrder: (token, orderId, body) => call('POST', `/v1/orders/${orderId}/report`, AnyBody, { token, body }),
    seed: (token, orderId) => call('GET', `/v1/orders/${orderId}/seed`, OrderSeedResponse, { token }),
    close: () => dispatcher.destroy(),
  };
}

function understand<S extends z.ZodType>(status: number, text: string, schema: S, retryAfter: string | string[] | undefined): Answer<z.infer<S>> {
  if (status === 204) return { kind: 'empty' };
  if (status >= 200 && status < 300) {
    const json = readJson(text);
    const parsed = schema.safeParse(json.kind === 'read' ? json.value : undefined);
    if (parsed.success) return { kind: 'ok', value: parsed.data };
    return { kind: 'unavailable', why: `status ${status} with a body that does not fit: ${json.kind === 'read' ? issuesText(parsed.error) : json.why}` };
  }
  const error = readError(status, text, [retryAfter].flat()[0]);
  if (status === 401) return { kind: 'unauthorized', code: error.code, message: error.message };
  if (status >= 400 && status < 500 && !LATER.has(status)) return { kind: 'refused', status, ...error };
  return { kind: 'unavailable', why: `status ${status} ${error.code}` };
}
