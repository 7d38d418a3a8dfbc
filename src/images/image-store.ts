/**
 * Is the artefact what its class says? The bytes are hashed as fetched, before any transform, and the digest comes from
 * the class, never from us (CVE-2024-47211).
 */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { ImageCheck, ImageStore } from '../contracts/images.js';
import type { PlannedImage } from '../contracts/plan.js';
import { parseSha256 } from '../domain/digest.js';
import { MetalflowError } from '../domain/errors.js';
import { LIMITS } from '../domain/limits.js';
import type { Logger } from '../telemetry/log.js';
import { assetPath, openAsset } from './asset-file.js';
import { createHttpsSource, wireProblem, type FetchLimits } from './https-source.js';

const DEFAULT_FETCH_LIMITS: FetchLimits = { connectSeconds: 10, headersSeconds: 30, silenceSeconds: 30 };

type Bad = Extract<ImageCheck, { kind: 'bad' }>;
const bad = (code: Bad['code'], details: Bad['details']): Bad => ({ kind: 'bad', code, details });

/** An open stream, and what the server says of its length. */
interface Opened {
  readonly kind: 'open';
  readonly body: Readable;
  readonly contentLength: number | null;
}

export interface ImageStoreDeps {
  /** Folder that the boot plane serves as /assets/. */
  readonly assetsDir: string;
  /** Base URL of /assets as nodes reach it, without a slash at its end; a function where the port is known only later. */
  readonly assetsUrl: string | (() => string);
  /** Largest artefact, bytes as fetched. */
  readonly maxBytes: number;
  /** Hosts https images may come from; empty or absent allows any. */
  readonly hosts?: readonly string[];
  /** Origin (`http://127.0.0.1:7080`) of our own server, for which http is allowed; only on loopback. */
  readonly allowHttpFor?: string;
  readonly fetchLimits?: Partial<FetchLimits>;
  /** Seconds for one whole check. */
  readonly totalSeconds?: number;
  readonly log: Logger;
}

export function createImageStore(deps: ImageStoreDeps): ImageStore & { close(): Promise<void> } {
  const rules = { hosts: deps.hosts ?? [], allowHttpFor: deps.allowHttpFor ?? null };
  const https = createHttpsSource({ rules, limits: { ...DEFAULT_FETCH_LIMITS, ...deps.fetchLimits } });
  const totalSeconds = deps.totalSeconds ?? LIMITS.planning.seconds;

  /** @throws image_unreachable for a source that is neither https nor a path inside the assets */
  function urlFor(source: string): string {
    const relative = assetPath(source);
    if (relative !== null) return `${typeof deps.assetsUrl === 'function' ? deps.assetsUrl() : deps.assetsUrl}/${relative}`;
    if (URL.canParse(source) && /^https?:$/.test(new URL(source).protocol)) return source;
    throw new MetalflowError('image_unreachable', { url: source.slice(0, 200), why: 'it is neither https://… nor asset:<path inside the assets>' });
  }

  async function openSource(source: string, signal: AbortSignal): Promise<Opened | Bad> {
    if (source.startsWith('asset:')) {
      const relative = assetPath(source);
      const file = relative === null ? ({ kind: 'refused', why: 'the path leaves the assets folder' } as const) : await openAsset(deps.assetsDir, relative);
      if (file.kind === 'refused') return bad('image_unreachable', { url: source, why: file.why });
      return { kind: 'open', body: file.handle.createReadStream({ highWaterMark: 256 * 1024 }), contentLength: file.bytes };
    }
    if (!URL.canParse(source)) return bad('image_unreachable', { url: source, why: 'it is no URL' });
    const fetched = await https.fetch(source, signal);
    if (fetched.kind === 'encoded') return bad('image_encoding_unexpected', { url: source, encoding: fetched.encoding.slice(0, 60) });
    return fetched.kind === 'refused' ? bad('image_unreachable', { url: source, why: fetched.why }) : fetched;
  }

  async function checkBytes(image: PlannedImage, expected: string, opened: Opened, progress: (bytes: number) => void, signal: AbortSignal): Promise<ImageCheck> {
    const url = image.source;
    const hash = createHash('sha256');
    let bytes = 0;
    // Aborting destroys the stream, which ends the loop below at once instead of at the next chunk.
    const abort = (): void => void opened.body.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', abort, { once: true });
    try {
      for await (const chunk of opened.body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        // A server that sends without end is left as soon as it has said too much.
        if (bytes > image.sizeBytes) return bad('image_size_wrong', { url, expected: image.sizeBytes, found: `more than ${image.sizeBytes}` });
        hash.update(chunk);
        progress(bytes);
      }
    } catch (error) {
      signal.throwIfAborted();
      const cut = (error as { code?: string }).code;
      if (cut === 'UND_ERR_SOCKET' || cut === 'ECONNRESET' || cut === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return bad('image_truncated', { url, expected: image.sizeBytes, found: bytes });
      return bad('image_unreachable', { url, why: wireProblem(error) });
    } finally {
      signal.removeEventListener('abort', abort);
      opened.body.destroy();
    }
    signal.throwIfAborted();
    if (bytes < image.sizeBytes) return bad('image_truncated', { url, expected: image.sizeBytes, found: bytes });
    const found = hash.digest('hex');
    return found === expected ? { kind: 'good', sha256: found, bytes } : bad('image_digest_mismatch', { url, expected, found });
  }

  async function checkWithin(image: PlannedImage, progress: (bytes: number) => void, signal: AbortSignal): Promise<ImageCheck> {
    // Refused before any download, not at the comparison; an absent digest is never "no check" (I3).
    const expected = parseSha256(image.sha256 ?? '');
    if (expected === null) return bad('image_digest_invalid', { url: image.source, digest: JSON.stringify(String(image.sha256).slice(0, 140)) });
    if (image.sizeBytes > deps.maxBytes) return bad('image_too_large', { url: image.source, limit: deps.maxBytes });
    const opened = await openSource(image.source, signal);
    if (opened.kind === 'bad') return opened;
    if (opened.contentLength !== null && opened.contentLength !== image.sizeBytes) {
      opened.body.on('error', () => {});
      opened.body.destroy();
      return bad('image_size_wrong', { url: image.source, expected: image.sizeBytes, found: opened.contentLength });
    }
    return checkBytes(image, expected, opened, progress, signal);
  }

  return {
    urlFor,
    check: async (image, progress, signal) => {
      signal.throwIfAborted();
      const limit = AbortSignal.timeout(totalSeconds * 1000);
      try {
        return await checkWithin(image, progress, AbortSignal.any([signal, limit]));
      } catch (error) {
        // The caller's own abort is its business; our limit is a fact about the server.
        signal.throwIfAborted();
        if (limit.aborted) return bad('image_unreachable', { url: image.source, why: `not read within ${totalSeconds} s` });
        deps.log.error({ err: error, source: image.source }, 'image check failed');
        throw error;
      }
    },
    close: () => https.close(),
  };
}
