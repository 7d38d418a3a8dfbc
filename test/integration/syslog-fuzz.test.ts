/** 100,000 datagrams of nonsense: the boot role lives on, holds no more memory for it, and keeps the next good line. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStore, openDatabase } from '../../src/store/index.js';
import { residentBytes } from '../support/memory.js';
import { reservePort } from '../support/ports.js';
import { seededRandom } from '../support/random.js';
import { deviceOf } from '../support/store-bench.js';
import { until } from '../support/until.js';
import { startRole } from '../support/world/role.js';

const SEED = 20_261_130;
const DATAGRAMS = 100_000;
const NODE = '127.0.1.7';
/** What the process may grow by: its heap breathes, the nonsense must not add up. */
const MOST_GROWTH = 160 * 1024 * 1024;
const PIECES = ['<30>', '<34>1 ', '<999>', '<', 'Oct 11 22:14:15 ', '2026-11-30T12:00:00Z ', 'host ', 'su[3]: ', '- - - ', '[a@1 b="c\\"] ', '\ufeff', '%s%n', '\u0000', '?code=secret ', '\u001b[2J', 'x'.repeat(1400), '\ud800'];

function datagram(random: () => number): Buffer {
  if (random() < 0.3) return Buffer.from(Array.from({ length: Math.floor(random() * 200) }, () => Math.floor(random() * 256)));
  return Buffer.from(Array.from({ length: Math.floor(random() * 9) }, () => PIECES[Math.floor(random() * PIECES.length)]!).join(''));
}

const socketAt = async (address: string): Promise<Socket> => {
  const socket = createSocket('udp4');
  socket.bind(0, address);
  await once(socket, 'listening');
  return socket;
};

test(`${DATAGRAMS} datagrams of seed ${SEED} from a node, from others and from strangers`, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-syslog-'));
  const store = createStore({ db: await openDatabase(`sqlite:${join(dir, 'metalflow.db')}`), temporal: { look: async () => ({ kind: 'absent' }) } });
  await store.installation.begin('installation-a');
  await store.installation.confirm();
  await store.devices.register(deviceOf({ addresses: [NODE] }), { state: 'active', adopted: false });
  const [port, http] = [await reservePort(), await reservePort()];
  const boot = startRole('boot', { METALFLOW_DATA_DIR: dir, METALFLOW_TFTP_PORT: '0', METALFLOW_BOOT_HTTP_PORT: String(http), METALFLOW_SYSLOG_PORT: String(port), METALFLOW_LOG_LEVEL: 'warn' });
  const sockets = await Promise.all([NODE, '127.0.1.8', '127.0.1.9', '127.0.2.1'].map(socketAt));
  const send = (socket: Socket, bytes: Buffer): Promise<void> => new Promise((resolve) => socket.send(bytes, port, '127.0.0.1', () => resolve()));
  const kept = async (text: string): Promise<boolean> => (await store.logs.read('7', { limit: 5000 })).lines.some((line) => line.text === text);
  /** As a node does: it says it again until somebody has heard it. */
  const sayUntilKept = (text: string): Promise<boolean> => until(`"${text}" is kept`, async () => {
    await send(sockets[0]!, Buffer.from(`<30>Oct 11 22:14:15 hook agent: ${text}`));
    return kept(text);
  }).catch((error: Error) => {
    throw new Error(`${error.message}\n${boot.log().slice(-3000)}`);
  });
  try {
    await sayUntilKept('before');
    const before = residentBytes(boot.pid);
    const random = seededRandom(SEED);
    let most = before;
    for (let sent = 0; sent < DATAGRAMS; sent += 100) {
      await Promise.all(Array.from({ length: 100 }, () => send(sockets[Math.floor(random() * sockets.length)]!, datagram(random))));
      if (sent % 5000 === 0) most = Math.max(most, residentBytes(boot.pid));
    }
    await sayUntilKept('still here');
    expect(most - before).toBeLessThan(MOST_GROWTH);
    const { lines } = await store.logs.read('7', { limit: 5000 });
    expect(lines.every(({ text }) => !text.includes('code=secret'))).toBe(true);
    expect(await boot.stop()).toBe(0);
  } finally {
    for (const socket of sockets) socket.close();
    await boot.stop();
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
