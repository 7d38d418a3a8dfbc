/** A transfer's own socket: its port is the transfer's id (RFC 1350 §4), and only its client is listened to. */
import type { RemoteInfo } from 'node:dgram';
import { bindUdp } from '../udp.js';
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

/** Opens the socket. @throws whatever bind throws (no port left, address gone) */
export async function openSession({ address, client, received, broken }: SessionDeps): Promise<Session> {
  const socket = await bindUdp(address, 0);
  let open = true;
  const send = (packet: Buffer, to: { address: string; port: number }): void => {
    // Sending never throws out of a timer or listener; a lost datagram is what the protocol is made for.
    if (open) socket.send(packet, to.port, to.address, () => {});
  };
  socket.on('error', broken);
  socket.on('message', (bytes: Buffer, from: RemoteInfo) => {
    const packet = readPacket(bytes);
    if (packet.kind === 'unreadable') return;
    if (from.port === client.port && from.address === client.address) received(packet);
    // An ERROR is never answered with one: two servers would go on for ever.
    else if (packet.kind !== 'error' && from.port > 0) send(errorPacket(TFTP_ERROR.unknownTransfer, 'unknown transfer'), from);
  });
  return {
    send: (packet) => send(packet, client),
    close() {
      if (!open) return;
      open = false;
      socket.close();
    },
  };
}
