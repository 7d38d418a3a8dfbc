/** NetBox's REST API over undici: one token, one limit a call, and every way it can fail in one error. */
import { Agent, request, type Dispatcher } from 'undici';
import type { z } from 'zod';
import { issuesText } from '../contracts/primitives.js';
import { MetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import { RestPage } from './shapes.js';

/** Only what a caller can act on: 2xx, 400, 404 and 412. Everything else has become `netbox_unreachable`. */
export interface RestAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly etag: string | null;
}

export interface RestOptions {
  /** Base URL, with or without a path: `https://netbox.example/`. */
  readonly url: string;
  /** v2 (`nbt_…`) or v1 (40 hex digits). */
  readonly token: string;
  /** For one try, from connecting to the last byte; default 10 s. */
  readonly timeoutMs?: number;
  readonly log: Logger;
}

/** A list repeats its name: any of these. */
export type Query = Readonly<Record<string, string | readonly string[]>>;

const searchOf = (query: Query): URLSearchParams => new URLSearchParams(Object.entries(query).flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, one])));

export interface Rest {
  /** Tried twice, since a read changes nothing. */
  get(path: string, query?: Query): Promise<RestAnswer>;
  /** Tried once: after a silent failure only a read can tell what happened. */
  send(method: 'PATCH' | 'POST', path: string, body: unknown, ifMatch?: string): Promise<RestAnswer>;
  /** Every object of a list, page by page. A list that does not end is an error, never a short list. */
  all<T>(path: string, query: Query, schema: z.ZodType<T>): Promise<T[]>;
  close(): Promise<void>;
}

const READ_TRIES = 2;
const MOST_PAGES = 200;
const MOST_BYTES = 16 * 1024 * 1024;

const unreachable = (why: string, cause?: unknown): MetalflowError => new MetalflowError('netbox_unreachable', { why }, { cause });

/** Checks an answer's shape: something else than NetBox may answer at its address. @throws netbox_unreachable */
export function shaped<T>(schema: z.ZodType<T>, body: unknown, what: string): T {
  const result = schema.safeParse(body);
  if (!result.success) throw unreachable(`${what} answered something that is not NetBox's: ${issuesText(result.error)}`);
  return result.data;
}

export function createRest(options: RestOptions): Rest {
  const timeoutMs = options.timeoutMs ?? 10_000;
  const base = options.url.replace(/\/+$/, '');
  const agent = new Agent({ connect: { timeout: timeoutMs }, headersTimeout: timeoutMs, bodyTimeout: timeoutMs, maxResponseSize: MOST_BYTES, connections: 8 });
  const authorization = `${options.token.startsWith('nbt_') ? 'Bearer' : 'Token'} ${options.token}`;

  async function once(method: Dispatcher.HttpMethod, path: string, search: URLSearchParams, body?: unknown, ifMatch?: string): Promise<RestAnswer> {
    const what = `${method} ${path}`;
    const url = `${base}${path}${search.size > 0 ? `?${search}` : ''}`;
    let status: number, text: string, etag: string | null, location: string;
    try {
      const answer = await request(url, {
        method,
        dispatcher: agent,
        signal: AbortSignal.timeout(timeoutMs),
        headers: { authorization, accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }), ...(ifMatch !== undefined && { 'if-match': ifMatch }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      status = answer.statusCode;
      etag = header(answer.headers.etag);
      location = header(answer.headers.location) ?? '?';
      text = await answer.body.text();
    } catch (error) {
      throw unreachable(`${what}: ${isTimeout(error) ? `no answer within ${timeoutMs} ms` : reasonOf(error)}`, error);
    }
    const parsed = parseJson(text);
    if (status >= 200 && status < 300 && parsed.ok) return { status, body: parsed.value, etag };
    if ((status === 400 || status === 412) && parsed.ok) return { status, body: parsed.value, etag };
    // A proxy's own 404 page must not read as "the device is gone".
    if (status === 404 && parsed.ok && detailOf(parsed.value) !== null) return { status, body: parsed.value, etag };
    if (status === 401 || status === 403) throw unreachable(`${what}: the token is refused (${status}: ${(parsed.ok && detailOf(parsed.value)) || 'no reason given'})`);
    if (status >= 300 && status < 400) throw unreachable(`${what}: answered ${status} to ${location.slice(0, 200)}; set the URL it points to`);
    throw unreachable(`${what}: answered ${status}${parsed.ok ? '' : ', not JSON'}`);
  }

  async function get(path: string, search: URLSearchParams): Promise<RestAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await once('GET', path, search);
      } catch (error) {
        if (attempt === READ_TRIES) throw error;
        options.log.debug({ err: error, path }, 'NetBox read failed, trying again');
      }
    }
  }

  async function all<T>(path: string, query: Query, schema: z.ZodType<T>): Promise<T[]> {
    const found: T[] = [];
    let search = searchOf(query);
    for (let page = 1; page <= MOST_PAGES; page++) {
      const answer = await get(path, search);
      if (answer.status !== 200) throw unreachable(`GET ${path}: answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 200)}`);
      const { next, results } = shaped(RestPage, answer.body, `GET ${path}`);
      found.push(...results.map((result) => shaped(schema, result, `GET ${path}`)));
      if (next === null) return found;
      // Only the query of `next` is followed: behind a proxy NetBox may name another host, and the token must not go there.
      search = new URL(next, base).searchParams;
    }
    throw unreachable(`GET ${path}: more than ${MOST_PAGES} pages`);
  }

  return {
    get: (path, query = {}) => get(path, searchOf(query)),
    send: (method, path, body, ifMatch) => once(method, path, searchOf({}), body, ifMatch),
    all,
    // A call still under way has its own limit; waiting for it would only make stopping slow.
    close: () => agent.destroy(),
  };
}

const header = (value: string | string[] | undefined): string | null => (Array.isArray(value) ? value[0] : value) ?? null;

function parseJson(text: string): { ok: true; value: unknown } | { ok: false } {
  if (text === '') return { ok: true, value: null };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}

/** Django REST framework says why in `detail`. */
const detailOf = (body: unknown): string | null =>
  typeof body === 'object' && body !== null && 'detail' in body && typeof body.detail === 'string' ? body.detail.slice(0, 200) : null;

function isTimeout(error: unknown): boolean {
  const { name, code } = error as NodeJS.ErrnoException;
  return name === 'TimeoutError' || /TIMEOUT/.test(String(code ?? ''));
}

/** Node gives connection errors of several addresses an empty message. */
function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return [code, message].filter((part) => part).join(': ').slice(0, 200) || 'failed';
}
