/** TFTP clients for tests: the npm package `tftp`, as an implementation that is not ours, and a bare socket that sends what it is told. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ackPacket, readPacket, requestPacket, type TftpOption, type TftpPacket } from '../../src/boot/tftp/packet.js';

interface TftpPackage {
  createClient(options: { host: string; port: number; retries?: number; timeout?: number; blockSize?: number; windowSize?: number }): { createGetStream(remote: string): Readable };
}
const tftp = createRequire(join(process.cwd(), 'package.json'))('tftp') as TftpPackage;

interface PackageOptions {
  readonly blockSize?: number;
  /** One by default: of several blocks it loses its place when it had to ask again. */
  readonly windowSize?: number;
  readonly timeout?: number;
}

async function fetchOnce(port: number, file: string, options: PackageOptions): Promise<Buffer> {
  const stream = tftp.createClient({ host: '127.0.0.1', port, retries: 50, timeout: 500, windowSize: 1, ...options }).createGetStream(file);
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', resolve).on('error', reject).on('abort', () => reject(new Error('aborted')));
  });
  return Buffer.concat(chunks);
}

/** Fetches with the package `tftp`. @throws its error, whose message ends in the server's text */
export async function fetchWithPackage(port: number, file: string, options: PackageOptions = {}): Promise<Buffer> {
  for (let tries = 1; ; tries++) {
    try {
      return await fetchOnce(port, file, options);
    } catch (error) {
      // It takes a second OACK for an error of its own, and a slow machine or network brings one: then it asks anew, as a person would.
      if ((error as { code?: string }).code !== 'EBADOP' || tries === 20) throw error;
    }
  }
}

export interface Received {
  readonly packet: TftpPacket;
  readonly from: { readonly address: string; readonly port: number };
  readonly bytes: Buffer;
}

/** A UDP port of a client, with what came to it. */
export class BareClient {
  readonly received: Received[] = [];
  private taken = 0;
  private constructor(
    private readonly socket: Socket,
    private readonly serverPort: number,
    private readonly server: string,
  ) {
    socket.on('message', (bytes: Buffer, from: RemoteInfo) => {
      this.received.push({ packet: readPacket(bytes), bytes, from });
      socket.emit('took');
    });
  }

  /** @param server the address it asks; @param own the address it asks from */
  static async open(serverPort: number, { server = '127.0.0.1', own = server.includes(':') ? '::1' : '127.0.0.1' } = {}): Promise<BareClient> {
    const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4');
    socket.bind(0, own);
    await once(socket, 'listening');
    return new BareClient(socket, serverPort, server);
  }

  /** To the server's own port, or to a transfer's. */
  async send(bytes: Buffer, port = this.serverPort): Promise<void> {
    await new Promise<void>((resolve, reject) => this.socket.send(bytes, port, this.server, (error) => (error ? reject(error) : resolve())));
  }

  ask(file: string, options: readonly TftpOption[] = [], mode = 'octet'): Promise<void> {
    return this.send(requestPacket('rrq', file, mode, options));
  }

  /** The next datagram that was not taken yet. @throws when none comes within `limitMs` */
  async next(limitMs = 60_000): Promise<Received> {
    const signal = AbortSignal.timeout(limitMs);
    while (this.taken >= this.received.length) await once(this.socket, 'took', { signal });
    return this.received[this.taken++]!;
  }

  /** The next `count` datagrams. */
  async take(count: number): Promise<Received[]> {
    const all: Received[] = [];
    while (all.length < count) all.push(await this.next());
    return all;
  }

  /** Takes part in a transfer as RFC 1350 and 7440 ask, from the first answer on; the file's bytes. */
  async receiveFile(blockSize: number, windowSize = 1): Promise<Buffer> {
    const blocks: Buffer[] = [];
    for (;;) {
      const { packet, from } = await this.next();
      if (packet.kind === 'error') throw new Error(`TFTP error ${packet.code}: ${packet.text}`);
      if (packet.kind === 'oack') await this.send(ackPacket(0), from.port);
      if (packet.kind !== 'data') continue;
      const ahead = (packet.block - blocks.length) & 0xffff;
      if (ahead === 1) blocks.push(packet.data);
      const last = ahead === 1 && packet.data.length < blockSize;
      // A gap, and a repeat of the last block in order, are answered with that block: the server goes on behind it.
      const gap = ahead > 1 && ahead < 0x8000;
      if (last || gap || ahead === 0 || blocks.length % windowSize === 0) await this.send(ackPacket(blocks.length), from.port);
      if (last) return Buffer.concat(blocks);
    }
  }

  close(): void {
    this.socket.close();
  }
}
