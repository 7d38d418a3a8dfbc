/** Streamed unpacking of an image. gzip is Node's own; xz and zstd are programs of the netboot system. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Compression } from '../contracts/node-class.js';

/** Programs that read packed bytes on stdin and write unpacked ones to stdout. Node 20 has neither format. */
export const UNPACKERS: Readonly<Record<'xz' | 'zstd', readonly [string, ...string[]]>> = { xz: ['xz', '-dc'], zstd: ['zstd', '-dcq'] };

const CHUNK = 1024 * 1024;

/** An error of the source reaches the reader through the stream itself; the callback is only there because pipeline wants one. */
const ignore = (): void => undefined;

/**
 * The unpacked bytes of `source`. Reading less than all of it ends the unpacker.
 * @throws plain errors for bytes that are not of that format, or a program that is missing; errors of the source as they are
 */
export function unpack(compression: Compression, source: AsyncIterable<Buffer>, programs: typeof UNPACKERS = UNPACKERS): AsyncIterable<Buffer> {
  switch (compression) {
    case 'none':
      return source;
    case 'gzip':
      return pipeline(Readable.from(source), createGunzip({ chunkSize: CHUNK }), ignore);
    case 'xz':
    case 'zstd':
      return throughProgram(programs[compression], source);
  }
}

async function* throughProgram([program, ...args]: readonly [string, ...string[]], source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let complaint = '';
  let sourceError: unknown = null;
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = `${complaint}${chunk.toString('utf8')}`.slice(-500);
  });
  // 'close' comes after the last byte of stdout; a program that could not be started has an 'error' instead.
  const closed = once(child, 'close').then(([code]) => ({ code: code as number | null, why: complaint.trim() }), (error: Error) => ({ code: null, why: error.message }));
  const input = Readable.from(source);
  input.on('error', (error) => {
    sourceError = error;
  });
  pipeline(input, child.stdin, ignore);
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield chunk;
    const { code, why } = await closed;
    if (sourceError) throw sourceError;
    if (code !== 0) throw new Error(`${program}: ${why || `ended with ${code}`}`);
  } finally {
    child.kill('SIGKILL');
  }
}
