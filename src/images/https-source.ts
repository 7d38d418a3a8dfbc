/** An image on somebody's web server: https only, a few redirects, the bytes exactly as they are stored there. */
import type { Readable } from 'node:stream';
import { Agent, errors, request, type Dispatcher } from 'undici';

export interface FetchLimits {
  /** Seconds until the connection stands, and until the headers are there. */
  readonly connectSeconds: number;
  readonly headersSeconds: number;
  /** Seconds without a byte. */
  readonly silenceSeconds: number;
}

export interface UrlRules {
  /** Hosts that may be asked; empty allows any. */
  readonly hosts: readonly string[];
  /** An origin on loopback, our own asset server, for which plain http is allowed. */
  readonly allowHttpFor: string | null;
}

export type Fetched =
  | { readonly kind: 'open'; readonly body: Readable; readonly contentLength: number | null }
  | { readonly kind: 'encoded'; readonly encoding: string }
  | { readonly kind: 'refused'; readonly why: string };

const MOST_REDIRECTS = 3;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost']);

/** Why this URL may not be asked; null when it may. */
export function refuseUrl(url: URL, rules: UrlRules): string | null {
  const isOwn = rules.allowHttpFor !== null && url.origin === rules.allowHttpFor && LOOPBACK.has(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isOwn)) return `${url.protocol}// is not allowed, only https`;
  if (url.username || url.password) return 'credentials in a URL are not allowed';
  if (!isOwn && rules.hosts.length > 0 && !rules.hosts.includes(url.hostname)) return `host ${url.hostname} is not among METALFLOW_IMAGE_HOSTS`;
  return null;
}

/** What went wrong on the way, in few words; undici's own messages speak to programmers. */
export function wireProblem(error: unknown): string {
  if (error instanceof errors.ConnectTimeoutError) return 'the connection took too long';
  if (error instanceof errors.HeadersTimeoutError) return 'the answer took too long to begin';
  if (error instanceof errors.BodyTimeoutError) return 'the bytes stopped coming';
  if (error instanceof errors.SocketError) return 'the connection broke';
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? code : String((error as Error).message).slice(0, 200);
}

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value.join(', ') : value);

/** Closes an answer that nobody will read. */
const drop = (body: Readable): void => {
  body.on('error', () => {});
  body.destroy();
};

export function createHttpsSource(deps: { rules: UrlRules; limits: FetchLimits }): { fetch(url: string, signal: AbortSignal): Promise<Fetched>; close(): Promise<void> } {
  const { limits } = deps;
  const dispatcher: Dispatcher = new Agent({
    connect: { timeout: limits.connectSeconds * 1000 },
    headersTimeout: limits.headersSeconds * 1000,
    bodyTimeout: limits.silenceSeconds * 1000,
    // A check is one long download; a connection kept for the next one would only be closed by the other side.
    pipelining: 0,
  });

  async function fetch(url: string, signal: AbortSignal): Promise<Fetched> {
    let target = new URL(url);
    for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
      const forbidden = refuseUrl(target, deps.rules);
      if (forbidden) return { kind: 'refused', why: hop === 0 ? forbidden : `redirected to ${target.origin}: ${forbidden}` };
      let answer: Dispatcher.ResponseData;
      try {
        // The digest is over the stored bytes, so no server may pack them on the way (I1).
        answer = await request(target, { dispatcher, signal, headers: { 'accept-encoding': 'identity' } });
      } catch (error) {
        signal.throwIfAborted();
        return { kind: 'refused', why: wireProblem(error) };
      }
      const location = one(answer.headers.location);
      if (!REDIRECTS.has(answer.statusCode)) return judge(answer);
      drop(answer.body);
      if (location === undefined || !URL.canParse(location, target.href)) return { kind: 'refused', why: `HTTP ${answer.statusCode} without a usable Location` };
      target = new URL(location, target);
    }
    return { kind: 'refused', why: `more than ${MOST_REDIRECTS} redirects` };
  }

  function judge(answer: Dispatcher.ResponseData): Fetched {
    const encoding = one(answer.headers['content-encoding'])?.trim().toLowerCase() ?? '';
    if (answer.statusCode !== 200) {
      drop(answer.body);
      return { kind: 'refused', why: `HTTP ${answer.statusCode}` };
    }
    if (encoding !== '' && encoding !== 'identity') {
      drop(answer.body);
      return { kind: 'encoded', encoding };
    }
    const length = one(answer.headers['content-length']);
    return { kind: 'open', body: answer.body, contentLength: length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null };
  }

  return { fetch, close: () => dispatcher.destroy() };
}
