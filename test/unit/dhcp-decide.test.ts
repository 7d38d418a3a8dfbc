import { answerTo, destinationOf, readAsk, type Ask, type Door } from '../../src/boot/dhcp/decide.js';
import { MESSAGE, OPTION } from '../../src/boot/dhcp/options.js';
import { writeDhcp, type DhcpPacket } from '../../src/boot/dhcp/packet.js';
import type { BootDecision } from '../../src/contracts/boot.js';
import { clientPacket, takenOf, UUID, type ClientName, type PacketChanges } from '../support/dhcp-client.js';
import { bootSubject } from '../support/boot-directory.js';

const MAC = '02:01:48:aa:bb:0c';
const PLACE = { address: '10.0.0.1', httpUrl: 'http://10.0.0.1:7080' };
const WIRE = { serverPort: 67, clientPort: 68, broadcast: '255.255.255.255' };
const RUN: BootDecision = { kind: 'run-boot', subject: bootSubject(), permission: { run: 3, bootAttempt: 'a', expiresAt: '2026-11-20T10:05:00Z' }, why: 'permission_leased' };
const MENU: BootDecision = { kind: 'wait-menu', subject: null, why: 'unknown_device' };

function ask(name: ClientName, door: Door = 'dhcp', changes: PacketChanges = {}): Ask {
  const heard = readAsk(clientPacket(name, MAC, { ...changes, options: { [OPTION.messageType]: Buffer.of(door === 'dhcp' ? MESSAGE.discover : MESSAGE.request), ...changes.options } }), door);
  if (heard.kind === 'none') throw new Error(heard.why);
  return heard.ask;
}
function reply(asked: Ask, decision: BootDecision = RUN, place = PLACE): DhcpPacket {
  const answer = answerTo(asked, decision, place);
  if (answer.kind === 'none') throw new Error(answer.why);
  return answer.packet;
}

describe('who is answered', () => {
  const silent: [string, ClientName, Door, PacketChanges, string][] = [
    ['a reply of another server', 'UEFI x64', 'dhcp', { kind: 'reply' }, 'is-a-reply'],
    ['a REQUEST on port 67, which is for the address server', 'UEFI x64', 'dhcp', { options: { 53: Buffer.of(MESSAGE.request) } }, 'other-message'],
    ['a DISCOVER on port 4011', 'UEFI x64', 'boot-server', {}, 'other-message'],
    ['a packet without a message type', 'UEFI x64', 'dhcp', { options: { 53: null } }, 'other-message'],
    ['an operating system', 'UEFI x64', 'dhcp', { options: { 60: Buffer.from('MSFT 5.0') } }, 'not-netboot'],
    ['a client without a vendor class', 'UEFI x64', 'dhcp', { options: { 60: null } }, 'not-netboot'],
    ['what went round in circles', 'UEFI x64', 'dhcp', { hops: 17 }, 'too-far'],
    ['no MAC', 'UEFI x64', 'dhcp', { mac: '00:00:00:00:00:00' }, 'no-unicast-mac'],
    ['a multicast MAC', 'UEFI x64', 'dhcp', { mac: '01:00:5e:00:00:01' }, 'no-unicast-mac'],
    ['a UUID of a wrong length', 'UEFI x64', 'dhcp', { options: { 97: Buffer.alloc(16) } }, 'uuid-malformed'],
    ['an architecture we have no program for', 'UEFI x64', 'dhcp', { options: { 93: Buffer.of(0, 2) } }, 'unknown-architecture'],
    ['HTTP firmware with an architecture of PXE', 'UEFI HTTP x64', 'dhcp', { options: { 93: Buffer.of(0, 7) } }, 'unknown-architecture'],
  ];
  test.each(silent)('%s is not', (_, name, door, changes, why) => {
    expect(readAsk(clientPacket(name, MAC, changes), door)).toEqual({ kind: 'none', why });
  });
  test('a UUID that is empty, or not there, costs nobody the boot', () => {
    for (const uuid of [Buffer.alloc(0), null]) expect(ask('BIOS PXE', 'dhcp', { options: { 97: uuid } }).mac).toBe(MAC);
  });
  test.each<[string, BootDecision]>([
    ['a device that is to boot its disk', { kind: 'boot-disk', subject: bootSubject(), why: 'no_permission' }],
    ['an unknown machine', { kind: 'boot-disk', subject: null, why: 'unknown_device' }],
    ['an unknown machine where the site is silent', { kind: 'silent', subject: null, why: 'unknown_device' }],
    ['anybody while the store is away', { kind: 'boot-disk', subject: null, why: 'store_unavailable' }],
  ])('%s is offered nothing, so its firmware goes on by itself', (_, decision) => {
    expect(answerTo(ask('UEFI x64'), decision, PLACE)).toEqual({ kind: 'none', why: decision.why });
  });
});

describe('what is offered', () => {
  test.each<[ClientName, string]>([
    ['BIOS PXE', `${MAC}/undionly.kpxe`],
    ['UEFI x64', `${MAC}/ipxe.efi`],
    ['UEFI x64 by the letter of RFC 4578', `${MAC}/ipxe.efi`],
    ['UEFI arm64', `${MAC}/ipxe-arm64.efi`],
    ['UEFI HTTP x64', `http://10.0.0.1:7080/ipxe/binary/${MAC}/ipxe.efi`],
    ['UEFI HTTP arm64', `http://10.0.0.1:7080/ipxe/binary/${MAC}/ipxe-arm64.efi`],
    ['iPXE on UEFI', `http://10.0.0.1:7080/ipxe/script/${MAC}/auto.ipxe`],
    ['iPXE on BIOS', `http://10.0.0.1:7080/ipxe/script/${MAC}/auto.ipxe`],
  ])('%s: %s, in the field and in option 67', (name, file) => {
    const packet = reply(ask(name));
    expect(packet.file).toBe(file);
    expect(packet.options.get(OPTION.bootFile)!.toString()).toBe(file);
  });

  test('no address and no lease: only who we are, where TFTP is, and the boot file', () => {
    const packet = reply(ask('UEFI x64'));
    expect(packet).toMatchObject({ kind: 'reply', xid: 0x1234_5678, mac: MAC, ciaddr: '0.0.0.0', yiaddr: '0.0.0.0', siaddr: '10.0.0.1', serverName: '10.0.0.1' });
    expect(Object.fromEntries([...packet.options].map(([code, value]) => [code, value.toString('latin1')]))).toEqual({
      53: '\x02', 54: '\x0a\x00\x00\x01', 60: 'PXEClient', 43: '\x06\x01\x08\xff', 66: '10.0.0.1', 67: `${MAC}/ipxe.efi`, 97: UUID.toString('latin1'),
    });
  });
  test('HTTP firmware is answered as HTTPClient, without what is PXE\'s own', () => {
    const { options } = reply(ask('UEFI HTTP x64'));
    expect([options.get(60)!.toString(), options.has(43)]).toEqual(['HTTPClient', false]);
  });
  test('on port 4011 it is an ACK to the address the client has by then', () => {
    const packet = reply(ask('UEFI x64', 'boot-server', { ciaddr: '10.0.0.50' }));
    expect([packet.options.get(53), packet.ciaddr, packet.yiaddr]).toEqual([Buffer.of(MESSAGE.ack), '10.0.0.50', '0.0.0.0']);
  });
  test('what a relay wrote comes back to it, last (RFC 3046)', () => {
    const packet = reply(ask('UEFI x64', 'dhcp', { giaddr: '10.9.0.1', options: { 82: Buffer.from('0104c0ffee00', 'hex') } }));
    expect([packet.giaddr, [...packet.options.keys()].at(-1), packet.options.get(82)]).toEqual(['10.9.0.1', 82, Buffer.from('0104c0ffee00', 'hex')]);
  });
  test('a machine that waits, or an unknown one where the site lets it in, gets the same path', () => {
    expect(takenOf(reply(ask('UEFI x64'), MENU))).toMatchObject({ file: `${MAC}/ipxe.efi`, nextServer: '10.0.0.1', address: '0.0.0.0' });
  });
  test('a URL that the field cannot hold is in the option alone', () => {
    const httpUrl = `http://${'boot.'.repeat(20)}example:7080`;
    const packet = reply(ask('iPXE on UEFI'), RUN, { ...PLACE, httpUrl });
    const bytes = writeDhcp(packet);
    expect(bytes.subarray(108, 236).every((byte) => byte === 0)).toBe(true);
    expect(bytes.includes(`${httpUrl}/ipxe/script/${MAC}/auto.ipxe`)).toBe(true);
  });
});

describe('where the reply goes (RFC 2131 §4.1)', () => {
  const sender = { address: '10.0.0.77', port: 68 };
  test.each<[string, Door, PacketChanges, object]>([
    ['to the relay, port 67', 'dhcp', { giaddr: '10.9.0.1', broadcast: true, ciaddr: '10.9.0.5' }, { address: '10.9.0.1', port: 67 }],
    ['to a client that has an address', 'dhcp', { ciaddr: '10.0.0.50', broadcast: false }, { address: '10.0.0.50', port: 68 }],
    ['to all, where the client asks for that', 'dhcp', { ciaddr: '10.0.0.50', broadcast: true }, { address: '255.255.255.255', port: 68 }],
    ['to all, since we have no address for it', 'dhcp', { broadcast: false }, { address: '255.255.255.255', port: 68 }],
    ['on port 4011: where it asked from', 'boot-server', { ciaddr: '10.0.0.50', broadcast: false }, sender],
  ])('%s', (_, door, changes, to) => {
    expect(destinationOf(clientPacket('UEFI x64', MAC, changes), door, sender, WIRE)).toEqual(to);
  });
});
