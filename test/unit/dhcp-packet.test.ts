import { isIpxe, clientArchOf, OPTION, vendorClassOf } from '../../src/boot/dhcp/options.js';
import { readDhcp, writeDhcp, type DhcpPacket } from '../../src/boot/dhcp/packet.js';
import { CLIENT_NAMES, clientPacket } from '../support/dhcp-client.js';
import { seededRandom } from '../support/random.js';

const MAC = '02:01:48:aa:bb:0c';
const read = (bytes: Buffer): DhcpPacket => {
  const reading = readDhcp(bytes);
  if (reading.kind === 'unreadable') throw new Error(reading.why);
  return reading.packet;
};
/** A packet whose options are these bytes. */
const withOptions = (hex: string, change: (bytes: Buffer) => void = () => undefined): Buffer => {
  const bytes = Buffer.concat([writeDhcp(clientPacket('BIOS PXE', MAC)).subarray(0, 240), Buffer.from(hex.replaceAll(' ', ''), 'hex')]);
  change(bytes);
  return bytes;
};

describe('a DHCP packet', () => {
  test.each(CLIENT_NAMES)('of %s reads back as it was written', (name) => {
    const packet = clientPacket(name, MAC, { giaddr: '10.1.2.3', hops: 2, file: 'x', serverName: 'y' });
    const back = read(writeDhcp(packet));
    expect({ ...back, options: [...back.options] }).toEqual({ ...packet, options: [...packet.options] });
  });

  test('is at least 300 bytes, which old relays and firmware want (RFC 951)', () => {
    expect(writeDhcp({ ...clientPacket('BIOS PXE', MAC), options: new Map([[53, Buffer.of(1)]]) })).toHaveLength(300);
  });

  test('carries an option of more than 255 bytes in parts, and reads the parts as one (RFC 3396)', () => {
    const long = Buffer.alloc(600, 'a');
    expect(read(writeDhcp(clientPacket('BIOS PXE', MAC, { options: { [OPTION.relayAgent]: long } }))).options.get(OPTION.relayAgent)).toEqual(long);
  });

  test('reads options in `file` and `sname` where option 52 says so, and takes neither for a name then', () => {
    const packet = read(withOptions('350101 340103 ff', (bytes) => {
      Buffer.from('3c09505845436c69656e74ff', 'hex').copy(bytes, 108);
      Buffer.from('5d020007ff', 'hex').copy(bytes, 44);
    }));
    expect([vendorClassOf(packet.options), clientArchOf(packet.options), packet.file, packet.serverName]).toEqual(['PXEClient', 7, '', '']);
  });

  test.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'shorter than any DHCP packet'],
    ['no options', withOptions('').subarray(0, 239), 'shorter than any DHCP packet'],
    ['more than anybody sends', Buffer.alloc(5000), 'longer than any DHCP packet'],
    ['an op that is none', withOptions('ff', (bytes) => (bytes[0] = 3)), 'neither request nor reply'],
    ['a hardware address of InfiniBand', withOptions('ff', (bytes) => (bytes[1] = 32)), 'not Ethernet'],
    ['a hardware address of 16 bytes', withOptions('ff', (bytes) => (bytes[2] = 16)), 'not Ethernet'],
    ['BOOTP', withOptions('ff', (bytes) => bytes.writeUInt32BE(0, 236)), 'no magic cookie: BOOTP, or something else'],
    ['an option that is cut off', withOptions('350101 3c40 50'), 'an option is longer than the packet'],
    ['a code without its length', withOptions('350101 3c'), 'an option is longer than the packet'],
    ['an overload into nonsense', withOptions('340101 ff', (bytes) => bytes.fill(0x3c, 108, 236)), 'an option in `file` is too long'],
  ])('%s is unreadable, and says why', (_, bytes, why) => {
    expect(readDhcp(bytes)).toEqual({ kind: 'unreadable', why });
  });

  test('without an END is taken as ended', () => {
    expect(read(withOptions('350101')).options.get(53)).toEqual(Buffer.of(1));
  });

  test('of any bytes at all makes the reader throw nothing', () => {
    const random = seededRandom(67);
    const kinds = { packet: 0, unreadable: 0 };
    for (let round = 0; round < 20_000; round++) {
      const bytes = writeDhcp(clientPacket(CLIENT_NAMES[round % CLIENT_NAMES.length]!, MAC)).subarray(0, 200 + Math.floor(random() * 160));
      for (let changes = Math.floor(random() * 8); changes >= 0; changes--) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      kinds[readDhcp(bytes).kind]++;
    }
    expect(kinds.packet).toBeGreaterThan(1000);
    expect(kinds.unreadable).toBeGreaterThan(1000);
  });
});

describe('what the options say', () => {
  const options = (...entries: [number, string | Buffer][]): ReadonlyMap<number, Buffer> => new Map(entries.map(([code, value]) => [code, Buffer.from(value as string, 'latin1')]));
  test.each<[string, ReadonlyMap<number, Buffer>, number | null]>([
    ['the first of several architectures', options([93, Buffer.of(0, 7, 0, 9)]), 7],
    ['the vendor class, where option 93 is missing', options([60, 'PXEClient:Arch:00011:UNDI:003000']), 11],
    ['the vendor class, where option 93 is cut off', options([93, Buffer.of(0)], [60, 'PXEClient:Arch:00000:UNDI:002001']), 0],
    ['nothing', options([60, 'PXEClient']), null],
  ])('the architecture is that of %s', (_, given, code) => {
    expect(clientArchOf(given)).toBe(code);
  });
  test.each<[string, ReadonlyMap<number, Buffer>, boolean]>([
    ['option 175', options([175, Buffer.of(1)]), true],
    ['the user class as iPXE writes it', options([77, 'iPXE']), true],
    ['the user class as RFC 3004 has it', options([77, '\x04iPXE']), true],
    ['another user class', options([77, 'iPXE2']), false],
    ['nothing', options(), false],
  ])('iPXE is told by %s', (_, given, is) => {
    expect(isIpxe(given)).toBe(is);
  });
});
