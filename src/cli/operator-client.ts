/** The operator plane, seen from the command line. */
import { request } from 'undici';
import { ErrorBody } from '../contracts/agent-api.js';
import type { OperatorVerb } from '../contracts/messages.js';
import { MetalflowError } from '../domain/errors.js';
import type { Request } from '../domain/runs.js';

/** What the plane answered: a value, or its refusal with the code as it gave it (it may be newer than we are). */
export type Answer = { readonly kind: 'answered'; readonly value: unknown } | { readonly kind: 'refused'; readonly error: ErrorBody };

export interface NodesFilter {
  readonly state?: string;
  readonly site?: string;
  readonly class?: string;
}
/** As the plane's query takes them; it says what does not fit. */
export interface LogsQuery {
  readonly run?: string;
  readonly since?: string;
  readonly limit?: string;
  readonly after?: string;
  readonly wait?: string;
}
export interface VerbOptions {
  readonly reason?: string;
  readonly done?: boolean;
  readonly on?: boolean;
  readonly attestRemoved?: boolean;
}

/** Every method throws `operator_unreachable` when nothing, or something that is not the operator plane, answers. */
export interface OperatorClient {
  list(filter: NodesFilter): Promise<Answer>;
  show(node: string): Promise<Answer>;
  /** What a run would do. */
  plan(node: string, kind: Request): Promise<Answer>;
  journal(node: string): Promise<Answer>;
  evidence(node: string): Promise<Answer>;
  strangers(): Promise<Answer>;
  /** What the node said over syslog. */
  logs(node: string, query: LogsQuery): Promise<Answer>;
  /** Sets desired_action in NetBox. */
  request(node: string, action: Request): Promise<Answer>;
  say(node: string, verb: OperatorVerb, options: VerbOptions): Promise<Answer>;
}

const MOST_BYTES = 16 * 1024 * 1024;

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (code === 'ECONNREFUSED') return 'the connection is refused';
  if (code?.endsWith('TIMEOUT')) return 'no answer in time';
  return code ?? message ?? 'unknown error';
}

/** @param deps.timeoutMs for the headers, and between two pieces of the body */
export function createOperatorClient(deps: { url: string; token: string; timeoutMs?: number }): OperatorClient {
  const timeout = deps.timeoutMs ?? 30_000;
  const unreachable = (why: string): MetalflowError => new MetalflowError('operator_unreachable', { url: deps.url, why });

  async function read(body: AsyncIterable<Buffer>): Promise<unknown> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > MOST_BYTES) throw unreachable(`the answer is larger than ${MOST_BYTES} bytes`);
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString('utf8');
    try {
      return text === '' ? null : JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  async function ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer> {
    let status: number;
    let value: unknown;
    try {
      const answer = await request(`${deps.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${deps.token}`, accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        headersTimeout: timeout,
        bodyTimeout: timeout,
      });
      status = answer.statusCode;
      value = await read(answer.body as AsyncIterable<Buffer>);
    } catch (error) {
      if (error instanceof MetalflowError) throw error;
      throw unreachable(reasonOf(error));
    }
    if (status >= 200 && status < 300 && value !== undefined) return { kind: 'answered', value };
    const refusal = ErrorBody.safeParse(value);
    if (!refusal.success) throw unreachable(`HTTP ${status}, and not in the words of metalflow`);
    return { kind: 'refused', error: refusal.data };
  }

  const of = (node: string): string => `/api/v1/nodes/${encodeURIComponent(node)}`;
  return {
    list: (filter) => ask('GET', `/api/v1/nodes${queryOf(filter)}`),
    show: (node) => ask('GET', `${of(node)}?live=true`),
    plan: (node, kind) => ask('GET', `${of(node)}/plan?kind=${kind}`),
    journal: (node) => ask('GET', `${of(node)}/journal`),
    logs: (node, query) => ask('GET', `${of(node)}/logs${queryOf(query)}`),
    evidence: (node) => ask('GET', `${of(node)}/evidence`),
    strangers: () => ask('GET', '/api/v1/strangers'),
    request: (node, action) => ask('POST', `${of(node)}/request`, { action }),
    say: (node, verb, options) => ask('POST', `${of(node)}/${verb}`, options),
  };
}

function queryOf(fields: object): string {
  const query = new URLSearchParams(Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined)).toString();
  return query && `?${query}`;
}
