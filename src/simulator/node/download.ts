/** What the node fetches by HTTP: hashed as it comes, kept only as far as it is asked to. */
import { createHash } from 'node:crypto';
import { request, type Agent } from 'undici';
import type { Sleep } from './sleep.js';
import { parseHttpUrl } from './url.js';

export type Download =
  | { readonly kind: 'got'; readonly url: string; readonly bytes: number; readonly sha256: string; readonly head: Buffer }
  | { readonly kind: 'failed'; readonly url: string; readonly why: string };

export interface Downloader {
  /** The first `keep` bytes come back as `head`. Never throws. */
  get(url: string, keep: number): Promise<Download>;
}

export interface DownloaderOptions {
  /** Connections of one power-on; destroyed with it. */
  readonly agent: Agent;
  readonly signal: AbortSignal;
  readonly sleep: Sleep;
  /** Bytes a second; undefined is as fast as it comes. Asked at every chunk. */
  readonly bytesPerSecond: () => number | undefined;
  readonly maxBytes?: number;
  /** Milliseconds without a byte until the download is given up; default 20000. */
  readonly silenceMs?: number;
}

const REDIRECTS = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 5;

const reasonOf = (error: unknown): string => (error instanceof Error ? `${(error as NodeJS.ErrnoException).code ?? error.name}: ${error.message}` : String(error)).slice(0, 200);

export function createDownloader({ agent, signal, sleep, bytesPerSecond, maxBytes = 2 ** 31, silenceMs = 20_000 }: DownloaderOptions): Downloader {
  async function fetchOnce(url: URL, keep: number, redirects: number): Promise<Download> {
    const failed = (why: string): Download => ({ kind: 'failed', url: url.href, why });
    const { statusCode, headers, body } = await request(url, { dispatcher: agent, signal, headersTimeout: silenceMs, bodyTimeout: silenceMs });
    if (statusCode !== 200) {
      await body.dump();
      const target = REDIRECTS.includes(statusCode) && typeof headers.location === 'string' ? parseHttpUrl(headers.location, url.href) : null;
      if (!target) return failed(`HTTP ${statusCode}`);
      return redirects > 0 ? fetchOnce(target, keep, redirects - 1) : failed('too many redirects');
    }
    const hash = createHash('sha256');
    const head: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < keep) head.push(chunk.subarray(0, keep - bytes));
      bytes += chunk.length;
      hash.update(chunk);
      if (bytes > maxBytes) return failed(`more than ${maxBytes} bytes`);
      const speed = bytesPerSecond();
      if (speed) await sleep((chunk.length / speed) * 1000, signal);
    }
    return { kind: 'got', url: url.href, bytes, sha256: hash.digest('hex'), head: Buffer.concat(head) };
  }
  return {
    async get(url, keep) {
      const parsed = parseHttpUrl(url);
      if (!parsed) return { kind: 'failed', url, why: 'not an http URL' };
      try {
        return await fetchOnce(parsed, keep, MAX_REDIRECTS);
      } catch (error) {
        return { kind: 'failed', url: parsed.href, why: signal.aborted ? 'powered off' : reasonOf(error) };
      }
    },
  };
}
