/**
 * Ports for programs that have to be told one before they listen. A port that was merely free a moment ago is anybody's: the kernel gives
 * it to the next socket that asks for any. These lie below what the kernel gives out, and no two tests of this machine are given the same.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Linux gives out 32768 and up (net.ipv4.ip_local_port_range). */
const [FIRST, LAST] = [20_000, 32_000];
/** Whoever listens here holds the port of the same number; no program under test does. It lasts as long as the process of the test. */
const KEEPER = '127.254.254.254';

async function hold(port: number): Promise<boolean> {
  const keeper = createServer().unref();
  const taken = once(keeper, 'listening').then(() => true, () => false);
  keeper.listen({ host: KEEPER, port, exclusive: true });
  return taken;
}

async function isFree(port: number): Promise<boolean> {
  const tcp = createServer();
  const udp = createSocket('udp4');
  try {
    const both = Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
    tcp.listen({ host: '127.0.0.1', port, exclusive: true });
    udp.bind({ address: '127.0.0.1', port, exclusive: true });
    return await both.then(() => true, () => false);
  } finally {
    await Promise.all([new Promise<void>((resolve) => tcp.close(() => resolve())), new Promise<void>((resolve) => udp.close(() => resolve()))]);
  }
}

/** @returns a port of 127.0.0.1 that is free for TCP and UDP, and stays so until the program is started on it */
export async function reservePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if ((await hold(port)) && (await isFree(port))) return port;
  }
}

export const reservePorts = (count: number): Promise<number[]> => Promise.all(Array.from({ length: count }, reservePort));
