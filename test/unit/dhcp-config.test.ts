import { dnsmasqConfig } from '../../src/boot/dhcp/dnsmasq.js';
import { keaConfig } from '../../src/boot/dhcp/kea.js';
import { CLIENT_KINDS, FIRMWARE_KINDS, netmaskOf, type DhcpSite } from '../../src/boot/dhcp/site.js';
import { CLIENT_ARCHES } from '../../src/domain/client-arch.js';

const MAC = '02:01:48:aa:bb:0c';
const SITE: DhcpSite = {
  place: { address: '10.0.0.1', httpUrl: 'http://10.0.0.1:7080' },
  devices: [{ deviceId: '7', name: 'rack1-node7', macs: [MAC] }],
  unknownMac: 'disk',
  network: { network: '10.0.0.0', prefix: 24, pool: { from: '10.0.0.100', to: '10.0.0.200' } },
};
interface Kea { 'client-classes': { name: string; test: string; 'boot-file-name'?: string; 'next-server'?: string; 'option-data'?: unknown[] }[]; reservations: Record<string, unknown>[]; subnet4: unknown[] }
const kea = (site: DhcpSite = SITE): Kea => (JSON.parse(keaConfig(site)) as { Dhcp4: Kea }).Dhcp4;
const lines = (site: DhcpSite = SITE): string[] => dnsmasqConfig(site).split('\n');

describe('the printed configurations', () => {
  test('know every architecture of the table, each in one kind', () => {
    expect(FIRMWARE_KINDS.flatMap(({ codes }) => codes).sort((a, b) => a - b)).toEqual(CLIENT_ARCHES.map(({ code }) => code));
    for (const { code } of CLIENT_ARCHES) {
      expect(lines().filter((line) => line.endsWith(`,option:client-arch,${code}`))).toHaveLength(1);
      expect(kea()['client-classes'].filter(({ test }) => test.includes(`option[93].hex, 0, 2) == 0x${code.toString(16).padStart(4, '0')}`))).toHaveLength(1);
    }
  });

  test('name for each device and kind the path that tells the gate who asks', () => {
    const files = kea()['client-classes'].filter((one) => one.test.includes('pkt4.mac == 0x020148aabb0c')).map((one) => one['boot-file-name']);
    expect(files).toEqual([
      `http://10.0.0.1:7080/ipxe/script/${MAC}/auto.ipxe`, `${MAC}/undionly.kpxe`, `${MAC}/ipxe.efi`, `${MAC}/ipxe-arm64.efi`,
      `http://10.0.0.1:7080/ipxe/binary/${MAC}/ipxe.efi`, `http://10.0.0.1:7080/ipxe/binary/${MAC}/ipxe-arm64.efi`,
    ]);
    for (const file of files) expect(lines().filter((line) => line.startsWith('dhcp-boot=tag:metalflow-020148aabb0c,') && line.endsWith(`,${file},,10.0.0.1`))).toHaveLength(1);
    expect(kea().reservations).toEqual([{ 'hw-address': MAC, 'client-classes': ['metalflow-device'], 'user-context': { device: '7', name: 'rack1-node7' } }]);
    expect(lines()).toContain(`dhcp-host=${MAC},set:metalflow-020148aabb0c`);
  });

  test('give UEFI by HTTP the vendor class it looks for, and nobody else', () => {
    const withIt = kea()['client-classes'].filter((one) => one['option-data']).map(({ name }) => name);
    expect(withIt).toEqual(['metalflow-020148aabb0c-http-ipxe.efi', 'metalflow-020148aabb0c-http-ipxe-arm64.efi']);
    expect(lines()).toContain('dhcp-option-force=tag:metalflow-httpclient,tag:!metalflow-ipxe,60,HTTPClient');
  });

  test('say nothing to machines without a device, unless the site lets them in', () => {
    expect(keaConfig(SITE)).not.toContain('UNKNOWN');
    expect(dnsmasqConfig(SITE)).not.toContain('!known');
    const menu: DhcpSite = { ...SITE, unknownMac: 'menu' };
    expect(kea(menu)['client-classes'].filter(({ test }) => test.startsWith("member('UNKNOWN')")).map((one) => one['boot-file-name'])).toEqual([
      'http://10.0.0.1:7080/ipxe/script/${mac}/auto.ipxe', 'undionly.kpxe', 'ipxe.efi', 'ipxe-arm64.efi', 'http://10.0.0.1:7080/ipxe/binary/ipxe.efi', 'http://10.0.0.1:7080/ipxe/binary/ipxe-arm64.efi',
    ]);
    expect(lines(menu).filter((line) => line.startsWith('dhcp-boot=tag:!known,'))).toHaveLength(CLIENT_KINDS.length);
  });

  test('name the network where they are asked to, and leave it to the site else', () => {
    expect(kea().subnet4).toEqual([{ id: 1, subnet: '10.0.0.0/24', pools: [{ pool: '10.0.0.100 - 10.0.0.200' }] }]);
    expect(lines()).toContain('dhcp-range=10.0.0.100,10.0.0.200,255.255.255.0');
    expect(kea({ ...SITE, network: null }).subnet4).toEqual([]);
    expect(dnsmasqConfig({ ...SITE, network: null })).not.toContain('dhcp-range');
    expect(lines({ ...SITE, network: { ...SITE.network!, pool: null } })).toContain('dhcp-range=10.0.0.0,static,255.255.255.0');
    expect([8, 20, 24, 30].map(netmaskOf)).toEqual(['255.0.0.0', '255.255.240.0', '255.255.255.0', '255.255.255.252']);
  });

  test.each<[string, string]>([
    ['a line end', 'x\ndhcp-script=/bin/evil'], ['a carriage return', 'x\rdhcp-script=/bin/evil'], ['a NUL', 'x\0dhcp-script=/bin/evil'],
    ['a quote', '"},{"library":"/evil.so"}],"x":["'], ['a comment', "*/ ?> <?include '/etc/shadow'?>"], ['a line separator', 'x\u2028dhcp-script=/bin/evil'], ['a backslash', 'x\\'], ['half a character', 'x\ud800y'],
  ])('a device name with %s adds no directive', (_, name) => {
    const site = { ...SITE, devices: [{ deviceId: '7', name, macs: [MAC] }] };
    const plain = lines().map((line) => (line.startsWith('# device') ? '' : line));
    expect(lines(site).map((line) => (line.startsWith('# device') ? '' : line))).toEqual(plain);
    expect(dnsmasqConfig(site)).toMatch(/^[\x20-\x7e\n]*$/);
    const { 'user-context': context, ...reservation } = kea(site).reservations[0]!;
    expect(context).toEqual({ device: '7', name: expect.stringMatching(/^[\x20-\x7e]*$/) });
    expect(keaConfig(site)).not.toContain('\\u');
    expect({ ...kea(site), reservations: [reservation] }).toEqual({ ...kea(), reservations: [{ 'hw-address': MAC, 'client-classes': ['metalflow-device'] }] });
  });

  const refused: [string, Partial<DhcpSite>, RegExp][] = [
    ['a server address that is a name', { place: { ...SITE.place, address: 'boot.example' } }, /--server-address has to be an IPv4 address/],
    ['a URL that could end the line', { place: { ...SITE.place, httpUrl: 'http://10.0.0.1:7080,evil\n' } }, /METALFLOW_ASSETS_URL/],
    ['a URL too long for a packet', { place: { ...SITE.place, httpUrl: `http://${'a'.repeat(90)}` } }, /at most 127 fit a DHCP packet/],
    ['a MAC that is none', { devices: [{ deviceId: '7', name: 'x', macs: ['02:01\n'] }] }, /is no MAC address/],
    ['a network with host bits', { network: { network: '10.0.0.1', prefix: 24, pool: null } }, /host bits/],
    ['a pool that ends before it begins', { network: { ...SITE.network!, pool: { from: '10.0.0.9', to: '10.0.0.8' } } }, /ends before it begins/],
    ['a pool of another network', { network: { ...SITE.network!, pool: { from: '10.0.1.9', to: '10.0.1.10' } } }, /not within 10.0.0.0\/24/],
    ['a pool with the broadcast address', { network: { ...SITE.network!, pool: { from: '10.0.0.9', to: '10.0.0.255' } } }, /not within/],
    ['a pool with the server in it', { network: { ...SITE.network!, pool: { from: '10.0.0.1', to: '10.0.0.9' } } }, /own address 10.0.0.1/],
  ];
  test.each(refused)('%s is refused by both', (_, change, why) => {
    for (const print of [keaConfig, dnsmasqConfig]) expect(() => print({ ...SITE, ...change })).toThrow(why);
  });
});
