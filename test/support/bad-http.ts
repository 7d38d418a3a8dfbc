/** HTTP as strangers, scanners and broken clients send it, from an address of its own, so that its limits are not those of the good. */
import { connect } from 'node:net';
import { request } from 'node:http';

/** The address that misbehaves; all of 127/8 is this host. */
export const STRANGER = '127.0.0.66';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface BadRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

const LIMIT_MS = 120_000;

/** @returns the answer; null when the connection ended without one, as it may while more is being sent than is read */
export function send(base: string, { method, path, headers, body }: BadRequest): Promise<Answer | null> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve) => {
    const asked = request({ host: hostname, port, localAddress: STRANGER, method, path, headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) }, timeout: LIMIT_MS, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => resolve({ status: answer.statusCode!, text: Buffer.concat(chunks).toString() }));
      answer.on('error', () => resolve(null));
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer')));
    asked.on('error', () => resolve(null));
    asked.end(body);
  });
}

/** Raw bytes, in pieces with a pause between them. @returns what came back until the other side ended it, or `waitMs` passed */
export function dribble(base: string, pieces: readonly (Buffer | string)[], { pauseMs = 0, waitMs = 3000 }: { pauseMs?: number; waitMs?: number } = {}): Promise<string> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: STRANGER });
    let back = '';
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(back);
    };
    const timer = setTimeout(done, waitMs);
    socket.on('data', (chunk: Buffer) => (back += chunk.toString('latin1')));
    socket.on('error', done).on('close', done);
    socket.on('connect', () => void (async () => {
      for (const piece of pieces) {
        if (!socket.writable) return;
        socket.write(piece);
        if (pauseMs > 0) await new Promise((next) => setTimeout(next, pauseMs));
      }
    })());
  });
}

export interface HalfOpen {
  /** Those that the other side has not ended. */
  left(): number;
  close(): void;
}

/** Sockets that have said half a request and stay. */
export async function halfOpen(base: string, count: number): Promise<HalfOpen> {
  const { hostname, port } = new URL(base);
  const sockets = Array.from({ length: count }, () => connect({ host: hostname, port: Number(port), localAddress: STRANGER }).on('error', () => undefined));
  await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.once('connect', () => socket.write('POST /v1/attest/hello HTTP/1.1\r\nHost: x\r\nContent-Le', () => resolve())).once('close', () => resolve()))));
  sockets.forEach((socket) => socket.resume());
  return { left: () => sockets.filter((socket) => !socket.closed).length, close: () => sockets.forEach((socket) => socket.destroy()) };
}
