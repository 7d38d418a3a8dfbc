import { parseLldp, type LldpReading } from '../../src/attestation/lldp.js';

const parse = (hex: string): LldpReading => parseLldp(Buffer.from(hex, 'hex'));

const CASE_1 = '020704fcecda2e3da5040707506f72742037060200780a0f7377697463682d75707374616972730000';
const UPSTAIRS: LldpReading = {
  kind: 'neighbour',
  chassis: { kind: 'mac', text: 'fc:ec:da:2e:3d:a5' },
  port: { kind: 'local', text: 'Port 7' },
  ttlSeconds: 120,
  system: 'switch-upstairs',
  portDescription: null,
};

describe('LLDP neighbours as switches send them (R3)', () => {
  const rows: { name: string; frame: string; reads: LldpReading }[] = [
    { name: '1: a MAC chassis and a local port', frame: CASE_1, reads: UPSTAIRS },
    {
      name: '2: an IPv4 chassis and an interface name',
      frame: '020605010a000001040c0545746865726e6574312f37060200780000',
      reads: { kind: 'neighbour', chassis: { kind: 'network address', text: '10.0.0.1' }, port: { kind: 'interface name', text: 'Ethernet1/7' }, ttlSeconds: 120, system: null, portDescription: null },
    },
    {
      name: '3: an IPv6 chassis and a MAC port',
      frame: '0212050220010db8000000000000000000000001040703fcecda2e3dac060200780000',
      reads: { kind: 'neighbour', chassis: { kind: 'network address', text: '2001:db8::1' }, port: { kind: 'mac', text: 'fc:ec:da:2e:3d:ac' }, ttlSeconds: 120, system: null, portDescription: null },
    },
    {
      name: '4: local ids with a port description',
      frame: '0208076c6561662d3031040307313706020078080967652d302f302f31370000',
      reads: { kind: 'neighbour', chassis: { kind: 'local', text: 'leaf-01' }, port: { kind: 'local', text: '17' }, ttlSeconds: 120, system: null, portDescription: 'ge-0/0/17' },
    },
    {
      name: '5: a MAC sent as text stays text',
      frame: '02120445343a38443a38433a33353a34413a3933040705657468657237060200780000',
      reads: { kind: 'neighbour', chassis: { kind: 'mac', text: 'E4:8D:8C:35:4A:93' }, port: { kind: 'interface name', text: 'ether7' }, ttlSeconds: 120, system: null, portDescription: null },
    },
    { name: '6: an organisational TLV without payload is skipped', frame: CASE_1.replace(/0000$/, 'fe040014c2010000'), reads: UPSTAIRS },
    { name: '7: a reserved TLV type is skipped', frame: CASE_1.replace(/0000$/, '1201ff0000'), reads: UPSTAIRS },
    { name: '8: a missing End TLV is forgiven', frame: CASE_1.replace(/0000$/, ''), reads: UPSTAIRS },
    { name: '9: a TLV that overruns discards the whole frame', frame: CASE_1.replace('0a0f', '0a7f'), reads: { kind: 'malformed', why: 'a TLV runs over the end of the frame' } },
    {
      name: '10: a TTL of 0 is no neighbour',
      frame: CASE_1.replace('06020078', '06020000'),
      reads: { kind: 'removed', chassis: UPSTAIRS.chassis, port: UPSTAIRS.port },
    },
  ];
  test.each(rows)('R3 case $name', ({ frame, reads }) => {
    expect(parse(frame)).toEqual(reads);
  });
});

describe('LLDP frames that no switch should send', () => {
  test.each([
    ['an empty frame', '', 'it does not begin with chassis id, port id and TTL'],
    ['half a TLV header', '02', 'a TLV runs over the end of the frame'],
    ['the TTL before the port', '020704fcecda2e3da506020078040707506f727420370000', 'it does not begin with chassis id, port id and TTL'],
    ['a chassis id without content', '020104040707506f72742037060200780000', 'a mandatory TLV is too short'],
    ['a TTL of one byte', '020704fcecda2e3da5040707506f727420370601780000', 'a mandatory TLV is too short'],
    ['two chassis ids', `${CASE_1.slice(0, -4)}020704fcecda2e3da50000`, 'a mandatory TLV is there twice'],
  ])('%s is malformed', (_, frame, why) => {
    expect(parse(frame)).toEqual({ kind: 'malformed', why });
  });

  test('control characters of a system name reach nobody', () => {
    const name = Buffer.from('sw\u001b[31m\u0000');
    const frame = CASE_1.slice(0, CASE_1.indexOf('0a0f')) + Buffer.from([0x0a, name.length]).toString('hex') + name.toString('hex');
    expect(parse(frame)).toMatchObject({ kind: 'neighbour', system: 'sw\ufffd[31m' });
  });

  test('Ethernet padding after the End TLV is ignored', () => {
    expect(parse(`${CASE_1}${'ff'.repeat(7)}`)).toEqual(UPSTAIRS);
  });

  test('every truncation and every flipped bit of a good frame is read without an exception', () => {
    const good = Buffer.from(CASE_1, 'hex');
    const kinds = new Set<string>();
    for (let length = 0; length < good.length; length += 1) kinds.add(parseLldp(good.subarray(0, length)).kind);
    for (let bit = 0; bit < good.length * 8; bit += 1) {
      const flipped = Buffer.from(good);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      kinds.add(parseLldp(flipped).kind);
    }
    expect(kinds).toContain('malformed');
    expect(kinds).toContain('neighbour');
  });
});
