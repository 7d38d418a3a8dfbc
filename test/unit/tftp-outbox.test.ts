import type { Socket } from 'node:dgram';
import { createOutbox, type Letter } from '../../src/boot/tftp/outbox.js';

const CLIENT = { address: '192.0.2.7', port: 2070 };

function bench(clients: number): { readonly sent: string[]; readonly letter: (text: string) => Letter; readonly outbox: ReturnType<typeof createOutbox> } {
  const sent: string[] = [];
  const socket = { send: (packet: Buffer, port: number, address: string) => void sent.push(`${packet.toString()} to ${address}:${port}`) } as unknown as Pick<Socket, 'send'>;
  return { sent, letter: (text) => ({ socket, packet: Buffer.from(text), to: CLIENT }), outbox: createOutbox({ alone: () => clients === 1 }) };
}
const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('packets of one turn leave at its end, once and in order', async () => {
  const { outbox, sent, letter } = bench(2);
  outbox.put(letter('a'));
  outbox.put(letter('b'));
  expect(sent).toEqual([]);
  await endOfTurn();
  expect(sent).toEqual(['a to 192.0.2.7:2070', 'b to 192.0.2.7:2070']);
  outbox.put(letter('c'));
  await endOfTurn();
  expect(sent).toHaveLength(3);
});

test('what waits can be sent before a socket is closed, and is not sent again', async () => {
  const { outbox, sent, letter } = bench(2);
  outbox.put(letter('last'));
  outbox.flush();
  expect(sent).toEqual(['last to 192.0.2.7:2070']);
  await endOfTurn();
  expect(sent).toHaveLength(1);
});

test('the packet of a lone client does not wait', () => {
  const { outbox, sent, letter } = bench(1);
  outbox.put(letter('a'));
  expect(sent).toEqual(['a to 192.0.2.7:2070']);
});

test('a client that is alone again does not overtake what waits', async () => {
  let clients = 2;
  const { sent, letter } = bench(2);
  const outbox = createOutbox({ alone: () => clients === 1 });
  outbox.put(letter('a'));
  clients = 1;
  outbox.put(letter('b'));
  expect(sent).toEqual([]);
  await endOfTurn();
  expect(sent.map((text) => text[0])).toEqual(['a', 'b']);
});
