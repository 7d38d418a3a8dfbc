/** A file on its way to a client that takes nothing. */
import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Digests } from '../../src/boot/assets/digests.js';
import { sendFile } from '../../src/boot/assets/send.js';
import type { BootFile } from '../../src/boot/files.js';

const CHUNK = 256 * 1024;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('takes one buffer until the first bytes have left, and two in turn from then on', async () => {
  const buffers: Buffer[] = [];
  const file: BootFile = {
    name: 'image', size: 4 * CHUNK, modified: new Date(0), version: '1', close: async () => {},
    read: async (_offset, length, into) => { buffers.push(into!); return into!.subarray(0, length); },
  };
  const left: (() => void)[] = [];
  const raw = Object.assign(new EventEmitter(), { destroyed: false, writeHead: () => raw, write: (_bytes: Buffer, done: () => void) => left.push(done), end: () => raw });
  const reply: Record<string, unknown> = { raw, statusCode: 200, getHeaders: () => ({}), hijack: () => reply };
  for (const name of ['header', 'status', 'type']) reply[name] = () => reply;
  const sending = sendFile({ headers: {}, method: 'GET' } as FastifyRequest, reply as unknown as FastifyReply, file, { of: async () => null, known: () => null } as unknown as Digests, 'open');
  await settled();
  expect([left.length, buffers.length]).toEqual([1, 1]);
  for (let n = 0; n < 4; n++) {
    left.shift()!();
    await settled();
  }
  await sending;
  expect([buffers.length, new Set(buffers).size]).toEqual([4, 2]);
});
