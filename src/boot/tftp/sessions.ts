/**
 * The ports that transfers answer from: a transfer's port is its id (RFC 1350 §4), and only its client is listened to.
 *
 * A few transfers of different clients share a socket, since waking up for each datagram of each socket is most of what many slow
 * clients cost. No client's port meets the same socket twice, so what is late from one transfer cannot get into the next; and a
 * socket that has had its share is closed with its last transfer.
 */
import type { RemoteInfo, Socket } from 'node:dgram';
import { bindUdp } from '../udp.js';
import { createOutbox } from './outbox.js';
import { errorPacket, readPacket, TFTP_ERROR, type TftpPacket } from './packet.js';

export interface SessionDeps {
  /** The address the server was asked at; answers must come from it, or a client on a host with several addresses drops them. */
  readonly address: string;
  readonly client: { readonly address: string; readonly port: number };
  readonly received: (packet: TftpPacket) => void;
  /** The socket can be used no more. */
  readonly broken: (error: Error) => void;
}

export interface Session {
  send(packet: Buffer): void;
  close(): void;
}

export interface Sessions {
  /** @throws whatever bind throws (no port left, address gone) */
  open(deps: SessionDeps): Promise<Session>;
  /** Sockets open now. */
  sockets(): number;
}

const TRANSFERS_OF_A_SOCKET = 16;
/** Strangers at a socket are told so this often, then met with silence: nobody may use it to send packets to others. */
const STRANGERS_TOLD = 64;

interface Shared {
  readonly address: string;
  readonly socket: Promise<Socket>;
  /** By the client's port; null once the transfer has ended. */
  readonly clients: Map<number, SessionDeps | null>;
  open: number;
}

export function createSessions(): Sessions {
  const shared = new Set<Shared>();
  let transfers = 0;
  const outbox = createOutbox({ alone: () => transfers === 1 });

  function share(address: string): Shared {
    const clients = new Map<number, SessionDeps | null>();
    const one: Shared = { address, clients, open: 0, socket: bindUdp(address, 0).then((socket) => listen(socket, one)) };
    shared.add(one);
    one.socket.catch(() => shared.delete(one));
    return one;
  }

  function listen(socket: Socket, { clients }: Shared): Socket {
    let strangers = 0;
    socket.on('error', (error) => clients.forEach((client) => client?.broken(error)));
    socket.on('message', (bytes: Buffer, from: RemoteInfo) => {
      const packet = readPacket(bytes);
      if (packet.kind === 'unreadable') return;
      const client = clients.get(from.port);
      if (client && client.client.address === from.address) client.received(packet);
      // An ERROR is never answered with one: two servers would go on for ever. A client whose transfer has ended is no stranger.
      else if (client !== null && packet.kind !== 'error' && from.port > 0 && strangers++ < STRANGERS_TOLD) {
        socket.send(errorPacket(TFTP_ERROR.unknownTransfer, 'unknown transfer'), from.port, from.address, () => {});
      }
    });
    return socket;
  }

  return {
    async open(deps) {
      const { address, client } = deps;
      const fits = (one: Shared): boolean => one.address === address && one.clients.size < TRANSFERS_OF_A_SOCKET && !one.clients.has(client.port);
      const one = [...shared].find(fits) ?? share(address);
      one.clients.set(client.port, deps);
      one.open++;
      const socket = await one.socket;
      let open = true;
      transfers++;
      return {
        send(packet) {
          if (open) outbox.put({ socket, packet, to: client });
        },
        close() {
          if (!open) return;
          open = false;
          transfers--;
          one.clients.set(client.port, null);
          if (--one.open > 0) return;
          // A refusal may be the last thing that was said on it.
          outbox.flush();
          shared.delete(one);
          socket.close();
        },
      };
    },
    sockets: () => shared.size,
  };
}
