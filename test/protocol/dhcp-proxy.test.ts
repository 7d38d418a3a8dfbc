/** The proxy DHCP over real sockets, on ports of this machine that need no right. */
import { createSocket } from 'node:dgram';
import { MESSAGE, OPTION } from '../../src/boot/dhcp/options.js';
import { NO_ADDRESS, type DhcpPacket } from '../../src/boot/dhcp/packet.js';
import { probeDhcp, type ProbeResult } from '../../src/boot/dhcp/probe.js';
import { startProxyDhcp, type ProxyDhcp } from '../../src/boot/dhcp/server.js';
import { bindShared } from '../../src/boot/dhcp/sockets.js';
import { createBootGate } from '../../src/boot/gate.js';
import type { Timers } from '../../src/boot/patience.js';
import type { UnknownMacPolicy } from '../../src/contracts/boot.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootSubject, fakeBootDirectory, MAC, NOW, permitted, type FakeBootDirectory } from '../support/boot-directory.js';
import { CLIENT_NAMES, clientPacket, rawClient, sent, takenOf, type ClientName, type PacketChanges, type RawClient } from '../support/dhcp-client.js';
import { seededRandom } from '../support/random.js';
import { until } from '../support/until.js';

const HOST = '127.0.0.1';
const PLACE = { address: HOST, httpUrl: 'http://127.0.0.1:7080' };
const CLEAR: ProbeResult = { kind: 'clear', addressServers: [{ address: '10.0.0.2', namesBootFile: false }] };
const DISK = '02:01:48:aa:bb:0d';
const STRANGER = '02:01:48:aa:bb:0e';

let client: RawClient;
let proxy: ProxyDhcp;
let directory: FakeBootDirectory;
const cleanUps: (() => Promise<void>)[] = [];

async function start({ unknownMac = 'disk', inHand, lookupMs = 300, probe = async () => CLEAR }: { unknownMac?: UnknownMacPolicy; inHand?: number; lookupMs?: number; probe?: () => Promise<ProbeResult> } = {}): Promise<void> {
  client = await rawClient({ listen: HOST, port: 0 });
  cleanUps.push(() => client.close());
  directory = fakeBootDirectory({ [MAC]: permitted(), [DISK]: bootSubject({ deviceId: '8' }) });
  const log = silentLogger();
  const gate = createBootGate({ directory, unknownMac, now: () => NOW, log, lookupMs });
  proxy = await startProxyDhcp({ gate, place: PLACE, log, probe, inHand, wire: { listen: HOST, broadcast: HOST, serverPort: 0, bootServerPort: 0, clientPort: client.port } });
  cleanUps.push(() => proxy.close());
}
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const say = (name: ClientName, mac: string, changes: PacketChanges = {}, port = proxy.port): Promise<void> => client.send(sent(clientPacket(name, mac, changes)), { address: HOST, port });
const handled = (): number => Object.values(proxy.stats().outcomes).reduce((sum, times) => sum + times, 0);

test.each(CLIENT_NAMES)('%s of a device that may boot is offered its boot file and no address', async (name) => {
  await start();
  await say(name, MAC);
  const taken = takenOf(await client.next());
  expect(taken).toMatchObject({ from: HOST, address: NO_ADDRESS, nextServer: HOST, vendorClass: name.startsWith('UEFI HTTP') ? 'HTTPClient' : 'PXEClient' });
  expect(taken.file).toContain(MAC);
  for (const lease of [OPTION.subnetMask, OPTION.router, OPTION.leaseSeconds]) expect(taken.packet.options.has(lease)).toBe(false);
  expect(proxy.stats()).toEqual({ received: 1, outcomes: { offered: 1 } });
  expect(proxy.listener()).toEqual({ state: 'listening', address: `${HOST}:${proxy.port}` });
});

test('on port 4011 it is acknowledged, where it asked from', async () => {
  await start();
  await say('UEFI x64', MAC, { ciaddr: HOST, broadcast: false, options: { 53: Buffer.of(MESSAGE.request) } }, proxy.bootServerPort);
  const packet = await client.next();
  expect(packet.options.get(OPTION.messageType)).toEqual(Buffer.of(MESSAGE.ack));
  expect(client.heard[0]!.port).toBe(proxy.bootServerPort);
});

test('a relay hears the reply, with what it wrote', async () => {
  await start();
  await proxy.close();
  const gate = createBootGate({ directory, unknownMac: 'disk', now: () => NOW, log: silentLogger() });
  let relay: RawClient;
  // A relay listens on the server's port too; what is free on its address may be taken on the server's.
  proxy = await until('one port is free on both addresses', async () => {
    relay = await rawClient({ listen: '127.0.0.2', port: 0 });
    cleanUps.push(() => relay.close());
    return startProxyDhcp({ gate, place: PLACE, log: silentLogger(), probe: async () => CLEAR, wire: { listen: HOST, serverPort: relay.port, bootServerPort: 0 } });
  });
  await relay!.send(sent(clientPacket('BIOS PXE', MAC, { giaddr: '127.0.0.2', hops: 1, options: { 82: Buffer.from('0104c0ffee00', 'hex') } })), { address: HOST, port: proxy.port });
  expect((await relay!.next()).options.get(82)).toEqual(Buffer.from('0104c0ffee00', 'hex'));
});

test('a device that boots its disk, a stranger, an operating system and the address server\'s own traffic hear nothing', async () => {
  await start();
  await say('UEFI x64', DISK);
  await say('UEFI x64', STRANGER);
  await say('UEFI x64', MAC, { options: { 60: Buffer.from('MSFT 5.0') } });
  await say('UEFI x64', MAC, { options: { 53: Buffer.of(MESSAGE.request) } });
  await until('every packet is handled', () => handled() === 4);
  expect(proxy.stats().outcomes).toEqual({ no_permission: 1, unknown_device: 1, 'not-netboot': 1, 'other-message': 1 });
  // Sent last, answered first: nothing of the others is on its way.
  await say('UEFI x64', MAC);
  expect((await client.next()).mac).toBe(MAC);
  expect(client.heard).toHaveLength(1);
});

test.each<[UnknownMacPolicy, boolean]>([['menu', true], ['disk', false], ['silent', false]])('with the policy %s, a stranger is offered a boot file: %s', async (unknownMac, offered) => {
  await start({ unknownMac });
  await say('UEFI x64', STRANGER);
  await until('every packet is handled', () => handled() === 1);
  expect(proxy.stats().outcomes).toEqual(offered ? { offered: 1 } : { unknown_device: 1 });
});

test.each<['fails' | 'hangs']>([['fails'], ['hangs']])('while the store %s, nobody is offered anything, and afterwards everybody again', async (mode) => {
  await start();
  directory.mode = mode;
  await say('UEFI x64', MAC);
  await until('every packet is handled', () => handled() === 1);
  expect(proxy.stats().outcomes).toEqual({ store_unavailable: 1 });
  directory.mode = 'works';
  await say('UEFI x64', MAC);
  expect(takenOf(await client.next()).file).toBe(`${MAC}/ipxe.efi`);
});

test('more questions than may wait for the store are dropped, and counted', async () => {
  await start({ inHand: 2, lookupMs: 60_000 });
  const fail: (() => void)[] = [];
  directory.byMac = () => new Promise((_, reject) => fail.push(() => reject(new Error('gone'))));
  for (let asked = 0; asked < 5; asked++) await say('UEFI x64', MAC);
  await until('two wait, and the others are dropped', () => handled() === 3 && fail.length === 2);
  for (const one of fail) one();
  await until('every packet is handled', () => handled() === 5);
  expect(proxy.stats().outcomes).toEqual({ busy: 3, store_unavailable: 2 });
});

test('20,000 broken datagrams (fixed seed) stop nothing: the next good one is answered', async () => {
  await start();
  const random = seededRandom(4011);
  for (let round = 0; round < 20_000; round++) {
    const bytes = sent(clientPacket(CLIENT_NAMES[round % CLIENT_NAMES.length]!, round % 3 ? MAC : STRANGER)).subarray(0, 1 + Math.floor(random() * 360));
    for (let changes = Math.floor(random() * 10); changes > 0; changes--) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    // A reply goes where ciaddr and giaddr say: on this machine.
    for (const [from, to] of [[12, 16], [24, 28]] as const) bytes.fill(0, Math.min(from, bytes.length), Math.min(to, bytes.length));
    await client.send(round % 50 ? bytes : Buffer.from(Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256))), { address: HOST, port: round % 5 ? proxy.port : proxy.bootServerPort });
    // The receiver of a datagram needs its turn, or the kernel drops what nobody reads.
    if (round % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await say('UEFI x64', MAC, { xid: 0x0bad_cafe });
  const good = await client.next((packet) => packet.xid === 0x0bad_cafe);
  expect(takenOf(good).file).toBe(`${MAC}/ipxe.efi`);
  const { received, outcomes } = proxy.stats();
  expect(received).toBeGreaterThan(15_000);
  expect(outcomes['unreadable']).toBeGreaterThan(1000);
  expect(client.heard.every(({ packet }) => packet.yiaddr === NO_ADDRESS)).toBe(true);
});

test('a port that is taken is port_in_use, and nothing is left open', async () => {
  const other = createSocket('udp4');
  await new Promise<void>((resolve) => other.bind({ address: HOST, port: 0 }, resolve));
  cleanUps.push(() => new Promise((resolve) => other.close(() => resolve())));
  const gate = { decide: async () => ({ kind: 'silent', subject: null, why: 'x' }) as const };
  await expect(startProxyDhcp({ gate, place: PLACE, log: silentLogger(), probe: async () => CLEAR, wire: { listen: HOST, serverPort: 0, bootServerPort: other.address().port } })).rejects.toMatchObject({ code: 'port_in_use' });
});

test('a free port that it was given is shared with nobody, not even with who would share', async () => {
  await start();
  for (const port of [proxy.port, proxy.bootServerPort]) await expect(bindShared('another', HOST, port)).rejects.toMatchObject({ code: 'port_in_use' });
});

describe('before its first answer', () => {
  /** Answers every DISCOVER as it is told. */
  async function server(answer: (asked: DhcpPacket) => Partial<DhcpPacket> | null, options: Record<number, Buffer> = {}): Promise<RawClient & { asked: DhcpPacket[] }> {
    const there = await rawClient({ listen: HOST, port: 0 });
    const asked: DhcpPacket[] = [];
    const answering = (async () => {
      for (;;) {
        const packet = await there.next();
        const changes = answer(packet);
        const port = there.heard.at(-1)!.port;
        const reply = new Map(Object.entries({ 53: Buffer.of(MESSAGE.offer), 54: Buffer.of(10, 0, 0, 9), ...options }).map(([code, value]) => [Number(code), value]));
        if (changes) await there.send(sent({ ...packet, kind: 'reply', ...changes, options: reply }), { address: HOST, port });
        asked.push(packet);
      }
    })().catch(() => undefined);
    void answering;
    cleanUps.push(() => there.close());
    return Object.assign(there, { asked });
  }
  /** Waits for answers until the server there has dealt with every question: however long that takes, and no longer. */
  async function probe({ port, asked }: { port: number; asked: readonly DhcpPacket[] }): Promise<ProbeResult> {
    let waited = (): void => {};
    const timers: Timers = {
      now: () => 0,
      after(_, call) {
        waited = call;
        return () => {};
      },
    };
    const result = probeDhcp({ address: HOST, listen: HOST, broadcast: HOST, serverPort: port, clientPort: 0, random: seededRandom(1), waitMs: 1000, timers });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const dealtWith = until('the server has dealt with every question', () => asked.length === 4)
      // Its answers lie in the socket of the probe by now, which the next whole turn of the event loop reads.
      .then(turn).then(turn).then(() => waited());
    const [found] = await Promise.all([result, dealtWith]);
    return found;
  }
  const PXE = { 60: Buffer.from('PXEClient') };

  test('it asks as BIOS, UEFI, ARM and HTTP firmware would', async () => {
    const there = await server(() => null);
    expect(await probe(there)).toEqual({ kind: 'clear', addressServers: [] });
    expect(there.asked.map(({ options }) => options.get(OPTION.clientArch)!.readUInt16BE(0)).sort((a, b) => a - b)).toEqual([0, 7, 11, 16]);
  });
  test('an offer of PXEClient without an address is another proxy', async () => {
    expect(await probe(await server(() => ({}), PXE))).toEqual({ kind: 'another-proxy', address: '10.0.0.9' });
  });
  test('so is one that answers HTTP firmware alone', async () => {
    const there = await server(({ options }) => (options.get(OPTION.clientArch)!.readUInt16BE(0) === 16 ? {} : null), { 60: Buffer.from('HTTPClient') });
    expect(await probe(there)).toEqual({ kind: 'another-proxy', address: '10.0.0.9' });
  });
  test.each<[string, Partial<DhcpPacket>, Record<number, Buffer>, boolean]>([
    ['with addresses only', { yiaddr: '10.0.0.50' }, {}, false],
    ['with addresses and a boot file', { yiaddr: '10.0.0.50', file: 'pxelinux.0' }, {}, true],
    ['with addresses and option 67', { yiaddr: '10.0.0.50' }, { 67: Buffer.from('pxelinux.0') }, true],
  ])('a server %s is none, and is named', async (_, changes, options, namesBootFile) => {
    expect(await probe(await server(() => changes, options))).toEqual({ kind: 'clear', addressServers: [{ address: '10.0.0.9', namesBootFile }] });
  });
  test.each<[string, Partial<DhcpPacket>]>([['to another client', { mac: STRANGER }], ['of another transaction', { xid: 1 }], ['that is a request', { kind: 'request' }]])('an answer %s is not heard', async (_, changes) => {
    expect(await probe(await server(() => changes, PXE))).toEqual({ kind: 'clear', addressServers: [] });
  });
  test('where another proxy answers, it does not start, says which, and frees its ports', async () => {
    const there = await server(() => ({}), PXE);
    await expect(start({ probe: () => probe(there) })).rejects.toMatchObject({ code: 'proxy_dhcp_not_alone', details: { address: '10.0.0.9' } });
  });
});
