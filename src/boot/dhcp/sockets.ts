/** UDP sockets for DHCP's ports, which several programs of a machine share. */
import { createSocket, type Socket } from 'node:dgram';
import { listenRefusal } from '../../telemetry/listening.js';
import { bound } from '../udp.js';

/**
 * Shares the port (SO_REUSEADDR: a DHCP client or an address server may hold it too; every one of them gets each broadcast) and may send
 * broadcasts. Bound to one address of the machine, Linux sends 255.255.255.255 out of that address's interface and needs no route for it.
 * @param port 0 takes one that nobody has: Linux would also give a socket that shares one that another sharing socket has
 * @throws port_in_use, port_forbidden, address_not_here
 */
export async function bindShared(what: string, address: string, port: number): Promise<Socket> {
  const socket = await bound(createSocket({ type: 'udp4', reuseAddr: port !== 0 }), address, port).catch(async (error: unknown) => {
    throw await listenRefusal({ what, transport: 'udp', address, port }, error);
  });
  socket.setBroadcast(true);
  return socket;
}

export const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.close(resolve));
