import { requestPacket } from '../../src/boot/tftp/packet.js';
import { seededRandom } from '../support/random.js';
import { BareClient, fetchWithPackage } from '../support/tftp-client.js';
import { startRelay } from '../support/tftp-relay.js';
import { bootFolder, PATIENT, patterned, testTftp, type BootFolder, type TestTftp } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const FILE = patterned(60_000);
let folder: BootFolder;
let tftp: TestTftp;

beforeAll(async () => {
  folder = await bootFolder({ file: FILE, small: patterned(3000) });
  tftp = await testTftp(folder.root, { limits: { waitMs: 15, waitMostMs: 30, resends: 40, firstResends: 40, transfersPerClient: 200 } });
});
afterAll(async () => {
  await tftp.server.close();
  await folder.remove();
});

/** Before its client's port is closed: what a transfer sends again would meet whoever has that port by then. */
const untilOver = (): Promise<boolean> => until('no transfer is left', () => tftp.server.stats().active === 0);

describe('a network that loses and doubles one datagram in ten', () => {
  test.each([[1, 1], [2, 1], [3, 4], [4, 4], [5, 16], [6, 16]])('seed %i, window %i: the file arrives byte for byte', async (seed, windowSize) => {
    const relay = await startRelay(tftp.server.port, seededRandom(seed), { loss: 0.1, double: 0.1 });
    const client = await BareClient.open(relay.port);
    // The client asks again until it hears: a lost request is its to repeat.
    const request = requestPacket('rrq', 'file', 'octet', [{ name: 'blksize', value: '512' }, { name: 'windowsize', value: String(windowSize) }]);
    const asking = setInterval(() => (client.received.length === 0 ? void client.send(request) : clearInterval(asking)), 20);
    try {
      expect((await client.receiveFile(512, windowSize)).equals(FILE)).toBe(true);
      expect(relay.lost()).toBeGreaterThan(0);
      expect(relay.doubled()).toBeGreaterThan(0);
      await untilOver();
    } finally {
      clearInterval(asking);
      client.close();
      relay.close();
    }
  });

  test.each([7, 8])('seed %i: a client that is not ours fetches it as well', async (seed) => {
    const relay = await startRelay(tftp.server.port, seededRandom(seed), { loss: 0.05, double: 0.1 });
    try {
      expect((await fetchWithPackage(relay.port, 'small', { windowSize: 1, blockSize: 512, timeout: 200 })).equals(patterned(3000))).toBe(true);
      await untilOver();
    } finally {
      relay.close();
    }
  });
});

test('doubled acknowledgements do not double the blocks', async () => {
  const { server } = await testTftp(folder.root, { limits: PATIENT });
  const relay = await startRelay(server.port, seededRandom(9), { loss: 0, double: 1 });
  const client = await BareClient.open(relay.port);
  try {
    await client.ask('file');
    expect((await client.receiveFile(512)).equals(FILE)).toBe(true);
    // Each of the 118 blocks is sent once and doubled once by the network.
    expect(client.received.length).toBeLessThanOrEqual(118 * 2);
  } finally {
    client.close();
    relay.close();
    await server.close();
  }
});

describe('thousands of broken datagrams', () => {
  test('to the server and to a transfer leave both alive, and the next good request is served', async () => {
    const random = seededRandom(20_261_120);
    const whole = (below: number): number => Math.floor(random() * below);
    const good = requestPacket('rrq', 'file', 'octet', [{ name: 'tsize', value: '0' }, { name: 'blksize', value: '600' }]);
    const broken = (): Buffer => {
      const kind = whole(4);
      if (kind === 0) return Buffer.from(Array.from({ length: whole(40) }, () => whole(256)));
      if (kind === 1) return Buffer.concat([Buffer.from([0, whole(8)]), Buffer.from(Array.from({ length: whole(60) }, () => whole(256)))]);
      const bytes = Buffer.from(good.subarray(0, kind === 2 ? whole(good.length) : good.length));
      for (let change = whole(4); change > 0 && bytes.length > 0; change--) bytes[whole(bytes.length)] = whole(256);
      return bytes;
    };
    const [client, sprayer] = [await BareClient.open(tftp.server.port), await BareClient.open(tftp.server.port)];
    await client.ask('file');
    const transferPort = (await client.next()).from.port;
    for (let sent = 0; sent < 4000; sent++) {
      await sprayer.send(broken(), sent % 3 === 0 ? transferPort : tftp.server.port);
      // Both ends live in this process: the server needs its turn, or the kernel throws the datagrams away.
      if (sent % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // The transfer's own client may send rubbish too.
    for (let sent = 0; sent < 50; sent++) await client.send(Buffer.alloc(whole(3)), transferPort);
    expect((await fetchWithPackage(tftp.server.port, 'file')).equals(FILE)).toBe(true);
    await untilOver();
    client.close();
    sprayer.close();
    expect(tftp.server.stats().ignored).toBeGreaterThan(1000);
  });
});
