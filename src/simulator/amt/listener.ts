/** The port of one AMT: opened, shut and opened again on the same number, on plain HTTP or on TLS. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureVersion } from 'node:tls';
import { MetalflowError } from '../../domain/errors.js';

/** The wire of port 16993. A version below 1.2 is spoken as an old ME does: with the ciphers and key sizes of its time. */
export interface AmtTls {
  /** PEM. */
  readonly key: string;
  /** PEM. */
  readonly cert: string;
  readonly minVersion?: SecureVersion;
  readonly maxVersion?: SecureVersion;
}

export interface ListenerDeps {
  readonly host: string;
  /** 0 takes a free one, and keeps it. */
  readonly port: number;
  readonly tls?: AmtTls | undefined;
  /** Whether a connection that comes in is heard. */
  readonly connected: () => 'heard' | 'lost';
  readonly serve: RequestListener;
}

export interface Listener {
  readonly port: number;
  /** Does nothing when it is as wanted. @throws MetalflowError `port_in_use` */
  set(wanted: 'open' | 'shut'): Promise<void>;
}

/** An AMT has room for few; more than any client of ours opens. */
const MOST_CONNECTIONS = 64;

/** @returns open. @throws MetalflowError `port_in_use` */
export async function openListener({ host, port: asked, tls, connected, serve }: ListenerDeps): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server = createWire(tls, serve);
  server.maxConnections = MOST_CONNECTIONS;
  server.on('connection', (socket) => {
    if (connected() === 'lost') return void socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  });
  server.on('clientError', (_error, socket) => void socket.destroy());
  server.on('tlsClientError', (_error, socket) => void socket.destroy());
  await listen(server, host, asked);
  const { port } = server.address() as AddressInfo;

  async function change(wanted: 'open' | 'shut'): Promise<void> {
    if (wanted === 'open' && !server.listening) await listen(server, host, port);
    if (wanted === 'shut' && server.listening) {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  }

  // One after the other: a port that is being shut cannot be opened yet.
  let last: Promise<void> = Promise.resolve();
  return {
    port,
    set: (wanted) => (last = last.catch(() => undefined).then(() => change(wanted))),
  };
}

function createWire(tls: AmtTls | undefined, serve: RequestListener): Server {
  const limits = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 };
  if (!tls) return createServer(limits, serve);
  const old = tls.minVersion === 'TLSv1' || tls.minVersion === 'TLSv1.1';
  return createTlsServer({ ...limits, ...tls, handshakeTimeout: 10_000, ...(old && { ciphers: 'DEFAULT:@SECLEVEL=0' }) }, serve);
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (error: NodeJS.ErrnoException): void => reject(new MetalflowError('port_in_use', { what: 'the AMT simulator', address: `${host}:${port}`, why: error.code ?? error.message }));
    server.once('error', refused);
    server.listen(port, host, () => {
      server.off('error', refused);
      resolve();
    });
  });
}
