/** An image's bytes exactly as they are stored on the server: never decoded, resumed when the connection breaks. */
import { request, type Dispatcher } from 'undici';
import { MetalflowError } from '../domain/errors.js';
import { growingDelay, type Sleep } from './sleep.js';

export interface DownloadInput {
  readonly url: string;
  /** Bytes as fetched; another length is an error before and during the transfer. */
  readonly sizeBytes: number;
  readonly signal: AbortSignal;
  readonly sleep: Sleep;
  readonly dispatcher?: Dispatcher;
  /** Broken connections that are resumed, each after a longer pause. Default 5. */
  readonly resumes?: number;
  /** Silence of the server that counts as a broken connection. Default 60 s. */
  readonly silenceMs?: number;
}

type Response = Dispatcher.ResponseData;

const header = (response: Response, name: string): string | undefined => [response.headers[name]].flat()[0];

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300);

/** Undici keeps the socket of a body nobody reads. */
const drop = (response: Response): void => {
  response.body.on('error', () => undefined).destroy();
};

/**
 * The offset at which this answer's body begins. A server without ranges answers 200 and starts over: then what we have is skipped.
 * null: the server has trouble now, ask again later.
 */
function startOf(response: Response, offset: number, { url, sizeBytes }: DownloadInput): number | null {
  const { statusCode: status } = response;
  if (status >= 500 || status === 408 || status === 429) return null;
  const encoding = header(response, 'content-encoding')?.trim().toLowerCase();
  // Whatever it says, the digest is over the stored bytes: to decode would hash others, not to decode would write others (I1).
  if (encoding && encoding !== 'identity') throw new MetalflowError('image_encoding_unexpected', { url, encoding: encoding.slice(0, 60) });
  if (status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(header(response, 'content-range') ?? '');
    if (!range || Number(range[1]) !== offset) throw new MetalflowError('image_unreachable', { url, why: `asked for bytes from ${offset}, got another range` });
    if (range[2] !== '*') checkLength(Number(range[2]), url, sizeBytes);
    return offset;
  }
  if (status === 416) throw new MetalflowError('image_truncated', { url, expected: sizeBytes, found: offset });
  if (status !== 200) throw new MetalflowError('image_unreachable', { url, why: `status ${status}` });
  const length = header(response, 'content-length');
  if (length !== undefined) checkLength(Number(length), url, sizeBytes);
  return 0;
}

function checkLength(found: number, url: string, sizeBytes: number): void {
  if (found > sizeBytes) throw new MetalflowError('image_too_large', { url, limit: sizeBytes });
  if (found < sizeBytes) throw new MetalflowError('image_truncated', { url, expected: sizeBytes, found });
}

/**
 * Yields exactly `sizeBytes` bytes, in order, or throws.
 * The first chunk comes only after status, encoding and length were found right, so a caller may wait for it before it touches a disk.
 * @throws image_unreachable, image_encoding_unexpected, image_truncated, image_too_large; the signal's reason when aborted
 */
export async function* downloadImage(input: DownloadInput): AsyncGenerator<Buffer, void, undefined> {
  const { url, sizeBytes, signal, sleep, dispatcher, resumes = 5, silenceMs = 60_000 } = input;
  if (!/^https?:\/\//i.test(url)) throw new MetalflowError('image_unreachable', { url, why: 'is neither http nor https' });
  const delay = growingDelay(1000, 30_000);
  let offset = 0;
  let etag: string | undefined;
  for (let broken = 0; ; broken += 1) {
    signal.throwIfAborted();
    let why: string;
    try {
      const response = await request(url, {
        signal, dispatcher, headersTimeout: silenceMs, bodyTimeout: silenceMs,
        headers: { 'accept-encoding': 'identity', ...(offset > 0 && { range: `bytes=${offset}-`, ...(etag !== undefined && { 'if-range': etag }) }) },
      });
      try {
        const start = startOf(response, offset, input);
        if (start === null) why = `status ${response.statusCode}`;
        else {
          const tag = header(response, 'etag');
          // RFC 9110 §13.1.5: a weak validator must not be sent in If-Range.
          etag = tag?.startsWith('"') ? tag : undefined;
          let skip = offset - start;
          for await (const chunk of response.body as AsyncIterable<Buffer>) {
            const skipped = Math.min(skip, chunk.length);
            skip -= skipped;
            const fresh = chunk.subarray(skipped);
            if (offset + fresh.length > sizeBytes) throw new MetalflowError('image_too_large', { url, limit: sizeBytes });
            offset += fresh.length;
            if (fresh.length > 0) yield fresh;
          }
          // A whole answer, and yet too short: more of the same would not help.
          if (offset < sizeBytes) throw new MetalflowError('image_truncated', { url, expected: sizeBytes, found: offset });
          return;
        }
      } finally {
        drop(response);
      }
    } catch (error) {
      if (error instanceof MetalflowError || signal.aborted) throw error;
      why = reason(error);
    }
    if (offset >= sizeBytes) return;
    if (broken >= resumes) {
      throw offset > 0 ? new MetalflowError('image_truncated', { url, expected: sizeBytes, found: offset }) : new MetalflowError('image_unreachable', { url, why });
    }
    await sleep(delay.next(), signal);
  }
}
