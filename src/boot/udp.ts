/** UDP sockets, bound. */
import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';

/** A socket of the address's family on `port`; 0 takes a free one. @throws the socket's error */
export async function bindUdp(address: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4' });
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
