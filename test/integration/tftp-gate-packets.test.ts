/**
 * What leaves the host, packet by packet: a device whose answer is `boot disk` is sent not one byte of a boot file, and one that is met
 * with silence no UDP packet at all, whatever it asks for, however, and whatever else goes on.
 */
import { createSocket } from 'node:dgram';
import { request } from 'node:http';
import { requestPacket } from '../../src/boot/tftp/packet.js';
import { declareNode, startBootProcess, type BootProcess } from '../support/boot-process.js';
import { startCapture, type Captured } from '../support/capture.js';
import { BareClient } from '../support/tftp-client.js';

const RUN = { mac: '02:00:00:00:00:01', address: '127.9.0.1' };
const DISK = { mac: '02:00:00:00:00:02', address: '127.9.0.2' };
const STRANGER = { mac: '02:00:00:00:00:99', address: '127.9.0.99' };
/** Every byte of every boot file has its highest bit set, and nothing else that is said over TFTP, HTTP or iPXE has. */
const secretFile = (size: number): Buffer => Buffer.alloc(size, Buffer.from([0xf1, 0x9d, 0xb7, 0xc3, 0x8a, 0xe5]));
const fileBytes = ({ payload }: Captured): number => payload.reduce((count, byte) => count + (byte >= 0x80 ? 1 : 0), 0);

let boot: BootProcess;
beforeAll(async () => {
  boot = await startBootProcess({
    unknownMac: 'silent',
    tftp: { 'ipxe.efi': secretFile(20_000), 'undionly.kpxe': secretFile(600) },
    assets: { 'vmlinuz-x86_64': secretFile(50_000), 'initramfs-x86_64': secretFile(50_000), 'signed.efi': secretFile(30_000) },
    async store(store) {
      await declareNode(store, '1', RUN.mac, 'provisioning', true, [RUN.address]);
      await declareNode(store, '2', DISK.mac, 'active', false, [DISK.address]);
    },
  });
});
afterAll(() => boot?.stop());

const OPTIONS = [{ name: 'blksize', value: '1468' }, { name: 'windowsize', value: '16' }];
const names = (mac: string): string[] => ['ipxe.efi', `${mac}/ipxe.efi`, `${mac.replaceAll(':', '-')}/undionly.kpxe`, `pxelinux.cfg/01-${mac.replaceAll(':', '-')}`, '/undionly.kpxe', 'none', '../metalflow.db'];
const urls = (mac: string): string[] => [
  `/ipxe/script/${mac}/auto.ipxe`, '/auto.ipxe', '/ipxe/binary/ipxe.efi', `/ipxe/binary/${mac}/ipxe.efi`,
  ...['vmlinuz-x86_64', 'initramfs-x86_64', 'signed.efi'].flatMap((name) => [`/assets/${name}`, `/assets/${name}?mac=${mac}`]),
];

function get(path: string, localAddress: string, method = 'GET'): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const asking = request(`${boot.httpUrl}${path}`, { method, localAddress, agent: false, headers: { range: 'bytes=0-' } }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part)).on('end', () => resolve({ status: answer.statusCode!, body: Buffer.concat(parts) }));
    });
    asking.on('error', reject).end();
  });
}

/** Everything a device may ask, in every form; one that is served has a file sent whole instead, and keeps no transfer open. @returns the clients, still open: what comes late is captured too */
async function askEverything({ mac, address }: typeof RUN, isServed: boolean): Promise<{ clients: BareClient[]; answers: { status: number; body: Buffer }[] }> {
  const clients: BareClient[] = [];
  for (const name of isServed ? [] : names(mac)) {
    for (const packet of [requestPacket('rrq', name, 'octet'), requestPacket('rrq', name, 'octet', OPTIONS), requestPacket('rrq', name, 'netascii'), requestPacket('rrq', name, 'mail'), requestPacket('wrq', name, 'octet')]) {
      const client = await BareClient.open(boot.tftpPort, { own: address });
      clients.push(client);
      await client.send(packet);
    }
  }
  if (isServed) {
    const client = await BareClient.open(boot.tftpPort, { own: address });
    clients.push(client);
    await client.ask('ipxe.efi', OPTIONS);
    await client.receiveFile(1468, 16);
  }
  const answers = [];
  for (const url of urls(mac)) for (const method of ['GET', 'HEAD']) answers.push(await get(url, address, method));
  return { clients, answers };
}

test('boot disk is not one byte of a boot file, silence is not one UDP packet; who may boot gets both', async () => {
  const capture = await startCapture('net 127.9.0.0/24');
  const asked = [await askEverything(DISK, false), await askEverything(STRANGER, false), await askEverything(RUN, true)];
  for (const client of asked[0]!.clients) await client.next();
  // Silence ends with nothing that could be waited for: this came after all that should be met with it, and is answered.
  const last = await BareClient.open(boot.tftpPort, { own: '127.9.0.3' });
  await last.ask(`${DISK.mac}/last`);
  await last.next();
  // Resends of the first second, if there were any.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const marker = createSocket('udp4');
  await new Promise<void>((resolve) => marker.bind(0, '127.9.0.200', resolve));
  marker.send('end', 9, '127.9.0.201');
  const packets = await capture.stop(({ source }) => source === '127.9.0.200');
  marker.close();
  for (const client of [last, ...asked.flatMap(({ clients }) => clients)]) client.close();

  const to = (address: string): Captured[] => packets.filter(({ source, destination }) => source === '127.0.0.1' && destination === address);
  const total = (some: readonly Captured[], protocol: 'udp' | 'tcp'): number => some.filter((packet) => packet.protocol === protocol).reduce((sum, packet) => sum + fileBytes(packet), 0);
  // The capture sees what it should: the iPXE program over TFTP and HTTP, kernel, initrd and UKI.
  expect(total(to(RUN.address), 'udp')).toBeGreaterThanOrEqual(20_000);
  // No less: of a segment that TCP sent again it sees both.
  expect(total(to(RUN.address), 'tcp')).toBeGreaterThanOrEqual(2 * 20_000 + 2 * (50_000 + 50_000 + 30_000));
  expect(asked[2]!.answers[0]!.body.toString()).toContain('kernel ');

  const disk = to(DISK.address);
  expect([total(disk, 'udp'), total(disk, 'tcp')]).toEqual([0, 0]);
  // An ERROR 2 for each of the TFTP requests, and nothing else.
  expect(disk.filter(({ protocol }) => protocol === 'udp').map(({ payload }) => payload.toString('latin1'))).toEqual(Array.from({ length: names(DISK.mac).length * 5 }, () => '\0\x05\0\x02netboot-not-allowed\0'));
  expect(asked[0]!.answers.filter(({ body }) => /kernel|initrd|chain/.test(body.toString()))).toEqual([]);
  expect(asked[0]!.answers[0]!.body.toString()).toBe('#!ipxe\necho netboot-not-allowed\nexit\n');

  const stranger = to(STRANGER.address);
  expect(stranger.filter(({ protocol }) => protocol === 'udp')).toEqual([]);
  expect(total(stranger, 'tcp')).toBe(0);
  // A TCP connection stands before anything is asked; what is said on it is that there is nothing.
  expect(new Set(asked[1]!.answers.map(({ status }) => status))).toEqual(new Set([404]));
});
