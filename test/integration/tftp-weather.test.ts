/** A network that loses, doubles and swaps 1 to 5 % of all datagrams: every transfer completes byte for byte, with our client and with Debian's. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requestPacket } from '../../src/boot/tftp/packet.js';
import { seededRandom } from '../support/random.js';
import { BareClient } from '../support/tftp-client.js';
import { startRelay } from '../support/tftp-relay.js';
import { bootFolder, patterned, testTftp, type BootFolder, type TestTftp } from '../support/tftp-server.js';

const run = promisify(execFile);
/** 100 kB and an odd end; an exact multiple of either block size ends in an empty block. */
const FILES: Readonly<Record<string, Buffer>> = { odd: patterned(100_003), exact512: patterned(512 * 100), exact1468: patterned(1468 * 40), small: patterned(20_000) };

let folder: BootFolder;
let tftp: TestTftp;
beforeAll(async () => {
  folder = await bootFolder(FILES);
  tftp = await testTftp(folder.root, { limits: { waitMs: 40, waitMostMs: 200, waitLeastMs: 15, resends: 40, firstResends: 40, transfersPerClient: 200 } });
});
afterAll(async () => {
  await tftp.server.close();
  await folder.remove();
});

const MATRIX = [0.01, 0.03, 0.05].flatMap((rate, seed) => [512, 1468].flatMap((blockSize) => [1, 4, 16].map((windowSize) => [rate, blockSize, windowSize, 100 * (seed + 1) + windowSize] as const)));

test.each(MATRIX)('at %d each, blksize %i, windowsize %i (seed %i)', async (rate, blockSize, windowSize, seed) => {
  const relay = await startRelay(tftp.server.port, seededRandom(seed), { loss: rate, double: rate, swap: rate });
  try {
    for (const name of ['odd', blockSize === 512 ? 'exact512' : 'exact1468']) {
      const client = await BareClient.open(relay.port);
      const request = requestPacket('rrq', name, 'octet', [{ name: 'blksize', value: String(blockSize) }, { name: 'windowsize', value: String(windowSize) }]);
      await client.send(request);
      // A lost request is the client's to repeat.
      const asking = setInterval(() => (client.received.length === 0 ? void client.send(request) : clearInterval(asking)), 100);
      try {
        expect((await client.receiveFile(blockSize, windowSize)).equals(FILES[name]!)).toBe(true);
      } finally {
        clearInterval(asking);
        client.close();
      }
    }
    expect(relay.lost() + relay.doubled() + relay.swapped()).toBeGreaterThan(0);
  } finally {
    relay.close();
  }
});

/** Debian's clients: what each can ask for. Neither asks for windows. */
const DEBIAN: readonly [string, string, (port: number, out: string) => [string, string[]]][] = [
  ['curl', 'blksize 512', (port, out) => ['curl', ['-sS', '--max-time', '200', '--tftp-blksize', '512', '-o', out, `tftp://127.0.0.1:${port}/small`]]],
  ['curl', 'blksize 1468', (port, out) => ['curl', ['-sS', '--max-time', '200', '--tftp-blksize', '1468', '-o', out, `tftp://127.0.0.1:${port}/small`]]],
  ['tftp-hpa', 'blksize 512', (port, out) => ['tftp', ['-4', '-m', 'octet', '127.0.0.1', String(port), '-c', 'get', 'small', out]]],
];
test.each(DEBIAN)('%s (%s) at 0.02 each', async (name, _, command) => {
  const relay = await startRelay(tftp.server.port, seededRandom(7), { loss: 0.02, double: 0.02, swap: 0.02 });
  const out = join(folder.root, '..', `fetched-${name}`);
  try {
    const [program, args] = command(relay.port, out);
    await run(program, args, { timeout: 200_000 }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new Error(`${program} is missing: install the Debian package ${name}`) : error;
    });
    expect((await readFile(out)).equals(FILES['small']!)).toBe(true);
  } finally {
    relay.close();
    await rm(out, { force: true });
  }
});
