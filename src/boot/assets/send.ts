/** A file as an HTTP answer: validators, ranges, and a stream of bounded memory. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { MetalflowError } from '../../domain/errors.js';
import type { BootFile } from '../files.js';
import { rangeApplies, unchanged } from './conditions.js';
import type { Digests } from './digests.js';
import { readRange } from './range.js';

const CHUNK = 256 * 1024;

/** `gated`: no cache between may keep it, or it would be served past the gate. */
export type Caching = 'gated' | 'open';

/** Answers GET and HEAD with the file, and closes it. A file that becomes shorter meanwhile breaks the connection off. */
export async function sendFile(request: FastifyRequest, reply: FastifyReply, file: BootFile, digests: Digests, caching: Caching): Promise<FastifyReply> {
  let streaming = false;
  try {
    const digest = await digests.of(file);
    const validators = { etag: digest && `"${digest}"`, modified: file.modified };
    reply.header('accept-ranges', 'bytes').header('last-modified', file.modified.toUTCString()).header('cache-control', cacheControl(file.name, digest, caching));
    if (validators.etag) reply.header('etag', validators.etag);
    const { headers } = request;
    if (unchanged({ ifNoneMatch: headers['if-none-match'], ifModifiedSince: headers['if-modified-since'] }, validators)) return await reply.status(304).send();
    const range = rangeApplies(headers['if-range']?.toString(), validators) ? readRange(headers.range, file.size) : { kind: 'whole' as const };
    if (range.kind === 'unsatisfiable') return await reply.status(416).header('content-range', `bytes */${file.size}`).send();
    const { from, to } = range.kind === 'part' ? range : { from: 0, to: file.size - 1 };
    reply.status(range.kind === 'part' ? 206 : 200).type('application/octet-stream').header('content-length', to - from + 1);
    if (range.kind === 'part') reply.header('content-range', `bytes ${from}-${to}/${file.size}`);
    if (request.method === 'HEAD' || file.size === 0) return await reply.send();
    streaming = true;
    const stream = streamOf(file, from, to);
    stream.once('error', (error) => request.log.warn({ name: file.name, reason: error.message }, 'a file was not sent to its end'));
    return await reply.send(stream);
  } finally {
    if (!streaming) await file.close();
  }
}

/** Only a name that holds the content's own digest can be kept for ever; any other file may be replaced under its name. */
function cacheControl(name: string, digest: string | null, caching: Caching): string {
  if (caching === 'gated') return 'private, no-store';
  return digest && name.includes(digest) ? 'public, max-age=31536000, immutable' : 'public, no-cache';
}

function streamOf(file: BootFile, from: number, to: number): Readable {
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = from; at <= to; ) {
      const bytes = await file.read(at, Math.min(CHUNK, to - at + 1));
      if (bytes.length === 0) throw new MetalflowError('unexpected', { what: `${file.name} became shorter while it was sent` });
      at += bytes.length;
      yield bytes;
    }
  }
  const stream = Readable.from(chunks(), { objectMode: false, highWaterMark: CHUNK });
  // Not in the generator: a client that leaves before the first byte never starts it, and its `finally` would not run.
  stream.once('close', () => void file.close().catch(() => {}));
  return stream;
}
