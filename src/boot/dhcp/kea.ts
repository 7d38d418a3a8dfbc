/** The configuration of Kea's DHCPv4 server: plain JSON, whole, and to be merged where a site has its own. */
import { bootFileOf } from './boot-file.js';
import { HTTP_CLIENT, OPTION, PXE_CLIENT } from './options.js';
import { checkedSite, CLIENT_KINDS, FIRMWARE_KINDS, IPXE_KIND, unknownBootFile, type ClientKind, type DhcpSite } from './site.js';

const className = (...parts: string[]): string => ['metalflow', ...parts].join('-');
const quoted = (text: string): string => `'${text}'`;
const vendorClassIs = (text: string): string => `substring(option[${OPTION.vendorClass}].hex, 0, ${text.length}) == ${quoted(text)}`;

/** Every class of a kind carries the fields of the answer; UEFI takes a URL only from a server that calls itself HTTPClient. */
const fieldsOf = (kind: ClientKind, address: string, file: string): object => ({
  'next-server': address,
  'boot-file-name': file,
  ...(kind.want.by === 'http' && { 'option-data': [{ name: 'vendor-class-identifier', data: HTTP_CLIENT, 'always-send': true }] }),
});

/**
 * One class a kind of client, and one for each MAC of a device in it: Kea takes a boot file from a class, but lets no class say "the MAC of
 * who asks". The reservations are what makes a client KNOWN; they give no address.
 * @throws dhcp_config_unprintable, mac_invalid
 */
export function keaConfig(given: DhcpSite): string {
  const { place, devices, unknownMac, network } = checkedSite(given);
  const kinds = [
    { name: className(IPXE_KIND.name), test: `option[${OPTION.ipxe}].exists or option[${OPTION.userClass}].hex == 'iPXE' or option[${OPTION.userClass}].hex == 0x0469505845` },
    ...FIRMWARE_KINDS.map(({ name, want, codes }) => {
      const arch = codes.map((code) => `substring(option[${OPTION.clientArch}].hex, 0, 2) == 0x${code.toString(16).padStart(4, '0')}`).join(' or ');
      return { name: className(name), test: `not member(${quoted(className(IPXE_KIND.name))}) and ${vendorClassIs(want.by === 'http' ? HTTP_CLIENT : PXE_CLIENT)} and (${arch})` };
    }),
  ];
  const ofDevices = devices.flatMap(({ macs }) => macs.flatMap((mac) => CLIENT_KINDS.map((kind) => ({
    name: className(mac.replaceAll(':', ''), kind.name),
    test: `member(${quoted(className(kind.name))}) and pkt4.mac == 0x${mac.replaceAll(':', '')}`,
    ...fieldsOf(kind, place.address, bootFileOf(kind.want, mac, place)),
  }))));
  const ofUnknown = unknownMac !== 'menu' ? [] : CLIENT_KINDS.map((kind) => ({
    name: className('unknown', kind.name), test: `member('UNKNOWN') and member(${quoted(className(kind.name))})`, ...fieldsOf(kind, place.address, unknownBootFile(kind.want, place)),
  }));
  const reservations = devices.flatMap(({ deviceId, name, macs }) => macs.map((mac) => ({ 'hw-address': mac, 'client-classes': [className('device')], 'user-context': { device: deviceId, name } })));
  const subnets = network ? [{ id: 1, subnet: `${network.network}/${network.prefix}`, ...(network.pool && { pools: [{ pool: `${network.pool.from} - ${network.pool.to}` }] }) }] : [];
  return `${JSON.stringify({
    Dhcp4: {
      'interfaces-config': { interfaces: ['*'] },
      'host-reservation-identifiers': ['hw-address'],
      'reservations-global': true,
      'client-classes': [...kinds, ...ofDevices, ...ofUnknown],
      reservations,
      subnet4: subnets,
    },
  }, null, 2)}\n`;
}
