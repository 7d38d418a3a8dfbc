/** A file as an HTTP answer: validators, ranges, and bytes through memory of a bounded size. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
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
    reply.hijack();
    reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders);
    await pump(reply.raw, file, { from, to }).then(
      () => reply.raw.end(),
      (error: Error) => {
        request.log.warn({ name: file.name, reason: error.message }, 'a file was not sent to its end');
        reply.raw.destroy();
      },
    );
    return reply;
  } finally {
    await file.close();
  }
}

/** Only a name that holds the content's own digest can be kept for ever; any other file may be replaced under its name. */
function cacheControl(name: string, digest: string | null, caching: Caching): string {
  if (caching === 'gated') return 'private, no-store';
  return digest && name.includes(digest) ? 'public, max-age=31536000, immutable' : 'public, no-cache';
}

/** What of the file goes out, both ends inclusive. */
interface Part {
  readonly from: number;
  readonly to: number;
}

/**
 * Writes the part to the socket, from memory where the file is, else through two buffers in turn: one is read into while the other is on its
 * way. (Node has no sendfile, so each byte is copied once into the process; a buffer that is used again costs no fresh pages.)
 * @throws when the file became shorter, or cannot be read
 */
async function pump(raw: ServerResponse, file: BootFile, { from, to }: Part): Promise<void> {
  if (file.bytes) return write(raw, file.bytes.subarray(from, to + 1));
  const buffers: Buffer[] = [];
  const read = (at: number, turn: number): Promise<Buffer> => file.read(at, Math.min(CHUNK, to - at + 1), (buffers[turn % 2] ??= takeBuffer()));
  let written: Promise<void> = Promise.resolve();
  let reading = read(from, 0);
  for (let at = from, turn = 0; at <= to; turn++) {
    const bytes = await reading;
    // Its buffer is the next one to be read into.
    await written;
    if (raw.destroyed) return;
    if (bytes.length === 0) throw new MetalflowError('unexpected', { what: `${file.name} became shorter while it was sent` });
    at += bytes.length;
    // Awaited in the next turn; an error must not be taken for one that nobody handles meanwhile.
    written = write(raw, bytes);
    written.catch(() => undefined);
    // A client that takes nothing holds one buffer, not two.
    if (turn === 0) await written;
    if (at <= to) reading = read(at, turn + 1);
  }
  await written;
  // Only after a good end: the buffers of a broken connection are left to the garbage collector, whoever still holds them.
  for (const buffer of buffers) giveBack(buffer);
}

/** Resolves when the bytes have left for the kernel, or the connection has gone: then nobody will hear the rest. */
function write(raw: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (raw.destroyed) return resolve();
    const done = (): void => {
      raw.off('close', done);
      resolve();
    };
    raw.once('close', done);
    raw.write(bytes, done);
  });
}

/** Buffers that nobody uses, shared by all transfers of the process. */
const idle: Buffer[] = [];
const MOST_IDLE = 64;
const takeBuffer = (): Buffer => idle.pop() ?? Buffer.allocUnsafeSlow(CHUNK);
const giveBack = (buffer: Buffer): void => void (idle.length < MOST_IDLE && idle.push(buffer));
