/** A bad network between TFTP clients and a server: loses, doubles and swaps datagrams by a seeded draw. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

export interface Relay {
  readonly port: number;
  readonly lost: () => number;
  readonly doubled: () => number;
  readonly swapped: () => number;
  close(): void;
}

/** How long a datagram is held back for the next to overtake it; none that is last waits for ever. */
const HELD_MS = 5;

/** @param random 0 ≤ n < 1 @param rates shares of 1; `swap`: held back until another has passed */
export async function startRelay(serverPort: number, random: () => number, rates: { loss: number; double: number; swap?: number }): Promise<Relay> {
  const sockets: Socket[] = [];
  const sides = new Map<string, Promise<Socket>>();
  let lost = 0;
  let doubled = 0;
  let swapped = 0;
  const held = new Map<Socket, () => void>();
  let closed = false;
  const open = async (): Promise<Socket> => {
    const socket = createSocket('udp4');
    sockets.push(socket);
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket;
  };
  const pass = (socket: Socket, bytes: Buffer, port: number): void => {
    if (random() < rates.loss) return void lost++;
    const release = held.get(socket);
    if (!release && rates.swap !== undefined && random() < rates.swap) {
      swapped++;
      const timer = setTimeout(() => held.get(socket)?.(), HELD_MS);
      held.set(socket, () => {
        clearTimeout(timer);
        held.delete(socket);
        if (!closed) socket.send(bytes, port, '127.0.0.1', () => {});
      });
      return;
    }
    socket.send(bytes, port, '127.0.0.1', () => {});
    release?.();
    if (random() >= rates.double) return;
    doubled++;
    socket.send(bytes, port, '127.0.0.1', () => {});
  };
  /** The relay's port that stands for `peer` to others; what comes to it goes on to `peer`. */
  const standIn = async (peer: number, far: (from: number) => Promise<Socket>): Promise<Socket> => {
    const socket = await open();
    socket.on('message', (bytes, from) => void far(from.port).then((out) => pass(out, bytes, peer)));
    return socket;
  };
  const sideOf = (key: string, make: () => Promise<Socket>): Promise<Socket> => {
    const side = sides.get(key) ?? make();
    sides.set(key, side);
    return side;
  };
  // Each client port has a stand-in towards the server, each transfer port has one towards its client.
  const towardsServer = (client: number): Promise<Socket> => sideOf(`client ${client}`, () => standIn(client, (transfer) => towardsClient(transfer, client)));
  const towardsClient = (transfer: number, client: number): Promise<Socket> =>
    sideOf(`transfer ${transfer} ${client}`, () => standIn(transfer, () => towardsServer(client)));
  const front = await open();
  front.on('message', (bytes, from) => void towardsServer(from.port).then((out) => pass(out, bytes, serverPort)));
  return {
    port: front.address().port,
    lost: () => lost,
    doubled: () => doubled,
    swapped: () => swapped,
    close() {
      closed = true;
      held.forEach((release) => release());
      sockets.forEach((socket) => socket.close());
    },
  };
}
