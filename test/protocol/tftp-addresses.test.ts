import type { Socket } from 'node:dgram';
import { requestPacket } from '../../src/boot/tftp/packet.js';
import { startTftpServer, type TftpServer } from '../../src/boot/tftp/server.js';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootGate } from '../../src/boot/gate.js';
import { addressesOfHost, listenUdp } from '../../src/boot/udp.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { fakeBootDirectory, NOW } from '../support/boot-directory.js';
import { BareClient } from '../support/tftp-client.js';
import { bootFolder, PATIENT, patterned, testTftp, type BootFolder } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const FILE = patterned(5000);
let folder: BootFolder;
const servers: TftpServer[] = [];
const clients: BareClient[] = [];
beforeAll(async () => {
  folder = await bootFolder({ file: FILE });
});
afterAll(() => folder.remove());
afterEach(async () => {
  // The clients last: what a server sends again would meet whoever has the port by then.
  await Promise.all(servers.splice(0).map((server) => server.close()));
  clients.splice(0).forEach((client) => client.close());
});

async function serverOn(address: string, hostAddresses: () => string[]): Promise<TftpServer> {
  const log = silentLogger();
  const gate = createBootGate({ directory: fakeBootDirectory(), unknownMac: 'menu', now: () => NOW, log });
  const server = await startTftpServer({ gate, files: createBootFiles({ roots: [folder.root], log }), address, port: 0, log, hostAddresses, limits: PATIENT });
  servers.push(server);
  return server;
}
const clientOf = async (port: number, where: { server?: string; own?: string } = {}): Promise<BareClient> => {
  const client = await BareClient.open(port, where);
  clients.push(client);
  return client;
};

describe('on a host with two addresses, listening on all of them', () => {
  test.each(['127.0.0.1', '127.0.0.2'])('who asks %s is answered from there, with the file and with a refusal', async (server) => {
    const { port } = await serverOn('0.0.0.0', () => ['127.0.0.1', '127.0.0.2']);
    const client = await clientOf(port, { server });
    await client.ask('file');
    expect((await client.receiveFile(512)).equals(FILE)).toBe(true);
    await client.ask('none');
    expect((await client.next()).packet.kind).toBe('error');
    expect(new Set(client.received.map(({ from }) => from.address))).toEqual(new Set([server]));
  });
  test.each(['::1', '127.0.0.1'])('of either family: %s', async (server) => {
    const { port } = await serverOn('::', () => ['127.0.0.1', '::1']);
    const client = await clientOf(port, { server });
    await client.ask('file', [{ name: 'blksize', value: '1468' }]);
    expect((await client.receiveFile(1468)).equals(FILE)).toBe(true);
    expect(new Set(client.received.map(({ from }) => from.address))).toEqual(new Set([server]));
  });
});

test('an address that comes is listened on, one that goes is let go, and one that cannot be bound stops nothing', async () => {
  let addresses = ['127.0.0.1'];
  const heard: string[] = [];
  const listener = await listenUdp({ address: '0.0.0.0', port: 0, hostAddresses: () => addresses, lookAgainMs: 5, received: (bytes, _, door) => heard.push(`${bytes.toString()} at ${door.address}`), log: silentLogger() });
  addresses = ['127.0.0.3', '192.0.2.77'];
  await until('it listens on the new address', () => listener.addresses().join() === '127.0.0.3');
  const client = await clientOf(listener.port, { server: '127.0.0.3' });
  await client.send(Buffer.from('hello'));
  await until('it is heard', () => heard.length > 0);
  expect(heard).toEqual(['hello at 127.0.0.3']);
  await listener.close();
  expect(listener.addresses()).toEqual([]);
});
test.each<[string, { address: string; hostAddresses?: () => string[] }]>([
  ['the one address', { address: '127.0.0.1' }],
  ['one of all addresses', { address: '0.0.0.0', hostAddresses: () => ['127.0.0.1', '127.0.0.2'] }],
])('a listener whose socket on %s fails says so, and opens it again on the same port', async (_what, where) => {
  const opened = jest.spyOn(jest.requireActual<typeof import('node:dgram')>('node:dgram'), 'createSocket');
  const heard: string[] = [];
  const listener = await listenUdp({ ...where, port: 0, lookAgainMs: 5, received: (bytes) => heard.push(bytes.toString()), log: silentLogger() });
  try {
    expect(listener.state()).toEqual({ state: 'listening', address: `${where.address}:${listener.port}` });
    (opened.mock.results[0]!.value as Socket).emit('error', new Error('read ENOBUFS'));
    expect(listener.state()).toEqual({ state: 'failed', why: `127.0.0.1:${listener.port}: read ENOBUFS` });
    await until('it listens', () => listener.state().state === 'listening');
    const client = await clientOf(listener.port);
    await client.send(Buffer.from('hello'));
    await until('it is heard', () => heard.length > 0);
    expect(heard).toEqual(['hello']);
  } finally {
    opened.mockRestore();
    await listener.close();
  }
});

test('the TFTP server tells the state of its port as it is now', async () => {
  const opened = jest.spyOn(jest.requireActual<typeof import('node:dgram')>('node:dgram'), 'createSocket');
  const server = await serverOn('127.0.0.1', () => []);
  expect(server.listener()).toEqual({ state: 'listening', address: `127.0.0.1:${server.port}` });
  (opened.mock.results[0]!.value as Socket).emit('error', new Error('read ENOBUFS'));
  opened.mockRestore();
  expect(server.listener()).toMatchObject({ state: 'failed' });
});

test('the addresses of a host are those of IPv4, or of both families', () => {
  expect(addressesOfHost('0.0.0.0')).toContain('127.0.0.1');
  expect(addressesOfHost('0.0.0.0').filter((address) => address.includes(':'))).toEqual([]);
  expect(addressesOfHost('::')).toEqual(expect.arrayContaining(addressesOfHost('0.0.0.0')));
});

describe('what a network can make of one request whose sender was forged', () => {
  test.each<[string, Buffer, number]>([
    ['without options, 3 blocks of 512 bytes', requestPacket('rrq', 'file', 'octet'), 3 * 516],
    ['with a window of 16 large blocks, 3 OACKs', requestPacket('rrq', 'file', 'octet', [{ name: 'blksize', value: '65464' }, { name: 'windowsize', value: '64' }]), 3 * 40],
    ['for a file that is not there, one ERROR', requestPacket('rrq', 'none', 'octet'), 40],
  ])('%s', async (_, request, most) => {
    const { server } = await testTftp(folder.root, { limits: { waitMs: 10, waitMostMs: 20 } });
    servers.push(server);
    const client = await clientOf(server.port);
    await client.send(request);
    await until('the transfer has ended', () => (server.stats().outcomes['timed-out'] ?? 0) + (server.stats().outcomes.refused ?? 0) === 1);
    await until('the client has an answer', () => client.received.length > 0);
    const out = client.received.reduce((sum, { bytes }) => sum + bytes.length, 0);
    process.stdout.write(`unacknowledged request: ${out} bytes out for ${request.length} in, ${(out / request.length).toFixed(1)} a byte\n`);
    expect(out).toBeLessThanOrEqual(most);
    expect(server.stats()).toMatchObject({ active: 0, sockets: 0 });
  });
});

describe('places', () => {
  test('a full table drops who was never heard, not who asks now', async () => {
    const { server } = await testTftp(folder.root, { limits: { waitMs: 5, waitMostMs: 100_000, firstResends: 50, resends: 50, transfers: 4, transfersPerClient: 4 } });
    servers.push(server);
    const silent = await Promise.all(Array.from({ length: 4 }, () => clientOf(server.port)));
    for (const one of silent) await one.ask('file');
    await until('each is sent the first block twice', () => silent.every(({ received }) => received.length >= 2));
    const client = await clientOf(server.port);
    await client.ask('file');
    expect((await client.receiveFile(512)).equals(FILE)).toBe(true);
    expect(server.stats().outcomes['crowded-out']).toBe(1);
  });
  test('200 clients at once are served by one process, over shared sockets', async () => {
    const { server } = await testTftp(folder.root, { limits: { ...PATIENT, transfersPerClient: 200 } });
    servers.push(server);
    const many = await Promise.all(Array.from({ length: 200 }, () => clientOf(server.port)));
    // Twenty in one go: the kernel drops what does not fit in the buffer of a socket that nobody reads meanwhile.
    for (let asked = 0; asked < many.length; asked += 20) {
      await Promise.all(many.slice(asked, asked + 20).map((one) => one.ask('file', [{ name: 'blksize', value: '1468' }])));
      await until(`${asked + 20} transfers are open`, () => server.stats().active === asked + 20);
    }
    expect(server.stats().sockets).toBeLessThanOrEqual(20);
    expect((await Promise.all(many.map((one) => one.receiveFile(1468)))).every((bytes) => bytes.equals(FILE))).toBe(true);
    await until('no transfer is left', () => server.stats().active === 0);
    expect(server.stats()).toMatchObject({ sockets: 0, outcomes: { complete: 200 } });
  });
});
