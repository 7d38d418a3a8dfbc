/** A hundred thousand datagrams that no client sends, from several sockets, at `metalflow boot` as a process of its own. */
import { readFileSync } from 'node:fs';
import { ackPacket, dataPacket, errorPacket, oackPacket, requestPacket, TFTP_ERROR } from '../../src/boot/tftp/packet.js';
import { startBootProcess, type BootProcess } from '../support/boot-process.js';
import { createFuzz } from '../support/fuzz.js';
import { seededRandom } from '../support/random.js';
import { BareClient, fetchWithPackage } from '../support/tftp-client.js';
import { patterned } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const DATAGRAMS = 100_000;
const SOCKETS = 8;
const SEED = 20_261_130;
const FILE = patterned(300_000);

/** What the kernel holds and has thrown away for the server's socket (/proc/net/udp). */
function kernelOf(port: number): { waiting: number; dropped: number } {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  // The file is read in pieces, and a row can slip between two of them while sockets come and go.
  for (let tries = 0; tries < 50; tries++) {
    const row = readFileSync('/proc/net/udp', 'utf8').split('\n').map((line) => line.trim().split(/\s+/)).find((words) => words[1]?.endsWith(end));
    if (row) return { waiting: parseInt(row[4]!.split(':')[1]!, 16), dropped: Number(row.at(-1)) };
  }
  throw new Error(`no UDP socket on port ${port}`);
}
const drained = (port: number): Promise<boolean> => until('the server has read what was sent to it', () => kernelOf(port).waiting === 0);

let boot: BootProcess;
beforeAll(async () => {
  boot = await startBootProcess({ unknownMac: 'menu', tftp: { file: FILE, 'a/b/lines': Buffer.from('a\nb\r\n') } });
});
afterAll(() => boot?.stop());

const options = [{ name: 'blksize', value: '1468' }, { name: 'windowsize', value: '16' }, { name: 'tsize', value: '0' }, { name: 'timeout', value: '1' }];
const GOOD = [
  requestPacket('rrq', 'file', 'octet'), requestPacket('rrq', 'file', 'octet', options), requestPacket('rrq', 'a/b/lines', 'netascii'), requestPacket('wrq', 'file', 'octet'),
  requestPacket('rrq', '02:01:48:aa:bb:0c/file', 'octet', options), requestPacket('rrq', '../../etc/passwd', 'octet'), requestPacket('rrq', '__proto__', 'octet'),
  ackPacket(0), ackPacket(1), ackPacket(65_535), dataPacket(1, Buffer.alloc(512)), errorPacket(TFTP_ERROR.optionsRefused, 'aborted'), oackPacket(options),
];

test(`after ${DATAGRAMS} broken datagrams (seed ${SEED}) the process lives, its memory and sockets are bounded, and the next good request is served byte for byte`, async () => {
  const fuzz = createFuzz(seededRandom(SEED));
  const before = boot.usage();
  let clients = await Promise.all(Array.from({ length: SOCKETS }, () => BareClient.open(boot.tftpPort)));
  let answered = 0;
  let most = 0;
  for (let sent = 0; sent < DATAGRAMS; sent++) {
    const client = clients[fuzz.whole(SOCKETS)]!;
    // To the server, or to the port of one of its transfers.
    const transfer = client.received.at(-1)?.from.port;
    const datagram = fuzz.whole(5) === 0 ? fuzz.bytes(600) : fuzz.mangled(GOOD);
    await client.send(datagram, transfer !== undefined && fuzz.whole(3) === 0 ? transfer : boot.tftpPort);
    // None may be lost on the way, or it would be no test of what the server does with it: no more than its buffer holds while it does not run.
    if (sent % 40 === 39) await drained(boot.tftpPort);
    if (sent % 10_000 !== 9999) continue;
    most = Math.max(most, boot.usage().sockets);
    answered += clients.reduce((sum, { received }) => sum + received.length, 0);
    // New ports, as a flood of clients has them.
    for (const old of clients) old.close();
    clients = await Promise.all(clients.map(() => BareClient.open(boot.tftpPort)));
  }
  for (const client of clients) client.close();
  expect(boot.isRunning()).toBe(true);
  expect(kernelOf(boot.tftpPort).dropped).toBe(0);
  expect(answered).toBeGreaterThan(1000);
  expect((await fetchWithPackage(boot.tftpPort, 'file')).equals(FILE)).toBe(true);
  expect((await fetchWithPackage(boot.tftpPort, 'file', { blockSize: 512, windowSize: 4 })).equals(FILE)).toBe(true);

  const after = boot.usage();
  // A process of some 100 MB; what it holds for a transfer is a socket, a few packets and at most 64 kB of file.
  expect(after.peak - before.peak).toBeLessThan(150 * 2 ** 20);
  // One address has 16 transfers at once, so no more sockets than that, beside those that were open before.
  expect(most - before.sockets).toBeLessThanOrEqual(20);
  expect(boot.log()).not.toContain('"level":50');
});
