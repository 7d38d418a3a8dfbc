/** UDP sockets, bound. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { addressText, type ListenerState } from '../telemetry/listening.js';
import type { Logger } from '../telemetry/log.js';

/**
 * Peers are addresses, never names. Node's own look-up costs a turn of the event loop for each datagram, and would let a block
 * be overtaken by the next.
 */
type Found = (error: null, address: string, family: number) => void;
const noLookUp4 = (address: string, _options: unknown, found: Found): void => found(null, address, 4);
const noLookUp6 = (address: string, _options: unknown, found: Found): void => found(null, address, 6);

/** A socket of the address's family on `port`; 0 takes a free one. @throws the socket's error */
export async function bindUdp(address: string, port: number): Promise<Socket> {
  const socket = createSocket(isIPv6(address) ? { type: 'udp6', lookup: noLookUp6 as never } : { type: 'udp4', lookup: noLookUp4 as never });
  return bound(socket, address, port);
}

/** @returns the socket once it is bound. @throws the socket's error; then it is closed */
export async function bound(socket: Socket, address: string, port: number): Promise<Socket> {
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ address, port, exclusive: true }, () => {
        socket.off('error', reject);
        resolve();
      });
    });
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** `0.0.0.0` is every IPv4 address of the host, `::` every address of either family. */
export const isEveryAddress = (address: string): boolean => address === '0.0.0.0' || address === '::';

/** The host's addresses as they can be bound now; link-local ones with their zone. */
export function addressesOfHost(address: string): string[] {
  return Object.entries(networkInterfaces()).flatMap(([name, infos]) =>
    (infos ?? [])
      .filter(({ family }) => address === '::' || family === 'IPv4')
      .map((info) => (info.family === 'IPv6' && info.scopeid !== 0 ? `${info.address}%${name}` : info.address)));
}

/** One socket of a listener: where a datagram came in, and from where its answer has to go out. */
export interface UdpDoor {
  readonly address: string;
  /** A datagram that cannot be sent is lost, as any may be. */
  send(bytes: Buffer, to: { readonly address: string; readonly port: number }): void;
}

export interface UdpListener {
  readonly port: number;
  /** The addresses it listens on now. */
  addresses(): string[];
  /** Now: `failed` while an address it listened on is lost, and until that is listened on again or has left the host. */
  state(): ListenerState;
  close(): Promise<void>;
}

export interface UdpListenerDeps {
  /** An address of this host, `0.0.0.0` or `::`. */
  readonly address: string;
  /** 0 takes a free one, the same on every address. */
  readonly port: number;
  /** Must not throw, and is not trusted not to. */
  readonly received: (bytes: Buffer, from: RemoteInfo, door: UdpDoor) => void;
  readonly log: Logger;
  readonly hostAddresses?: (address: string) => string[];
  /** How often new and gone addresses of the host are looked for, and lost ones opened again, ms. */
  readonly lookAgainMs?: number;
}

const LOOK_AGAIN_MS = 5000;

/**
 * Listens on one address, or on each address of the host by a socket of its own. A single wildcard socket cannot tell which
 * address a datagram was sent to (Node does not hand out IP_PKTINFO), so the answer would leave from the address the kernel likes
 * best; firmware drops an answer from another address than it asked (RFC 1123 §4.2.3.4 wants them the same). Broadcasts reach none of
 * these sockets, which is what RFC 1123 §4.2.3.5 asks of a TFTP server.
 * @throws the socket's error, when an address cannot be bound at the start
 */
export async function listenUdp({ address, port, received, log, hostAddresses = addressesOfHost, lookAgainMs = LOOK_AGAIN_MS }: UdpListenerDeps): Promise<UdpListener> {
  const sockets = new Map<string, Socket>();
  const warned = new Set<string>();
  /** Why, by address. */
  const lost = new Map<string, string>();
  let bound = port;
  let looking: Promise<void> | null = null;
  let closing = false;

  async function open(own: string): Promise<void> {
    const socket = await bindUdp(own, bound);
    const door: UdpDoor = { address: own, send: (bytes, to) => socket.send(bytes, to.port, to.address, () => {}) };
    socket.on('message', (bytes, from) => {
      try {
        received(bytes, from, door);
      } catch (error) {
        log.error({ err: error }, 'a datagram was dropped');
      }
    });
    socket.on('error', (error) => {
      if (sockets.get(own) !== socket) return;
      log.error({ err: error, address: own }, 'a UDP socket failed');
      lost.set(own, error.message);
      drop(own);
    });
    if (closing) return void socket.close();
    bound = socket.address().port;
    sockets.set(own, socket);
    lost.delete(own);
    warned.delete(own);
  }

  function drop(own: string): void {
    sockets.get(own)?.close();
    sockets.delete(own);
  }

  const every = isEveryAddress(address);
  const addressesNow = (): string[] => (every ? hostAddresses(address) : [address]);

  /** Addresses come and go: a lease, a failover, an interface that is up later than this process. Sockets fail. */
  async function follow(): Promise<void> {
    const wanted = new Set(addressesNow());
    for (const own of lost.keys()) if (!wanted.has(own)) lost.delete(own);
    for (const own of sockets.keys()) if (!wanted.has(own)) drop(own);
    for (const own of wanted) {
      if (sockets.has(own) || closing) continue;
      // A new IPv6 address cannot be bound while the network is asked whether it is free; the next look finds it.
      await open(own).then(() => log.info({ address: own, port: bound }, 'listens on a new address'), (error: Error) => {
        if (!warned.has(own)) log.warn({ address: own, port: bound, reason: error.message }, 'an address of this host cannot be listened on');
        warned.add(own);
      });
    }
  }

  try {
    for (const own of addressesNow()) await open(own);
  } catch (error) {
    for (const own of [...sockets.keys()]) drop(own);
    throw error;
  }
  const look = (): Promise<void> =>
    follow().catch((error: Error) => log.warn({ reason: error.message }, "the host's addresses cannot be read")).finally(() => (looking = null));
  const timer = setInterval(() => void (looking ??= look()), lookAgainMs);
  timer.unref();

  return {
    port: bound,
    addresses: () => [...sockets.keys()],
    state() {
      for (const [own, why] of lost) return { state: 'failed', why: `${addressText(own, bound)}: ${why}` };
      return sockets.size > 0 ? { state: 'listening', address: addressText(address, bound) } : { state: 'failed', why: 'this host has no address to listen on' };
    },
    async close() {
      closing = true;
      clearInterval(timer);
      await looking;
      await Promise.all([...sockets.values()].map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
      sockets.clear();
    },
  };
}
