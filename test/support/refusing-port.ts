/** A TCP port of 127.0.0.1 that refuses: nobody listens there, and nobody else can, since it is the near end of a connection. */
import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';

export async function refusingPort(): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer((socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return {
    port: socket.localPort!,
    async close() {
      socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
