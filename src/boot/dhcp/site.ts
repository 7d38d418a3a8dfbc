/** What the printed configurations say, for any DHCP server: checked once, so that nothing in them can be read as anything else. */
import { isIPv4 } from 'node:net';
import type { UnknownMacPolicy } from '../../contracts/boot.js';
import type { NetbootDevice } from '../../contracts/dhcp.js';
import { CLIENT_ARCHES, type ClientArch, type IpxeProgramName } from '../../domain/client-arch.js';
import { MetalflowError } from '../../domain/errors.js';
import { normalizeMac } from '../../domain/mac.js';
import { ABSOLUTE_URL } from '../ipxe/words.js';
import { bootFileOf, type BootPlace, type BootWant } from './boot-file.js';
import { FILE_BYTES } from './packet.js';

/** The network whose addresses the DHCP server gives, where metalflow is asked to print that too. */
export interface DhcpNetwork {
  /** First address, without host bits. */
  readonly network: string;
  readonly prefix: number;
  readonly pool: { readonly from: string; readonly to: string } | null;
}

export interface DhcpSite {
  readonly place: BootPlace;
  readonly devices: readonly NetbootDevice[];
  /** `menu`: machines that no device declares are given a boot file too, by a path that their iPXE fills in. */
  readonly unknownMac: UnknownMacPolicy;
  readonly network: DhcpNetwork | null;
}

/** Clients that are given the same boot file. */
export interface ClientKind {
  /** A word of letters, digits, `.` and `-`: for a class or a tag. */
  readonly name: string;
  readonly want: BootWant;
  /** Numbers of option 93; none for iPXE, which is told by its own option. */
  readonly codes: readonly number[];
}

export const IPXE_KIND: ClientKind = { name: 'ipxe', want: { by: 'script' }, codes: [] };

/** The table's rows, those with the same program and the same way to it together. */
export const FIRMWARE_KINDS: readonly ClientKind[] = kindsOf(CLIENT_ARCHES);
export const CLIENT_KINDS: readonly ClientKind[] = [IPXE_KIND, ...FIRMWARE_KINDS];

function kindsOf(arches: readonly ClientArch[]): ClientKind[] {
  const kinds = new Map<string, { by: 'tftp' | 'http'; program: IpxeProgramName; codes: number[] }>();
  for (const { code, program, httpBoot } of arches) {
    const by = httpBoot ? 'http' : 'tftp';
    const name = `${by}-${program}`;
    const kind = kinds.get(name) ?? { by, program, codes: [] };
    kind.codes.push(code);
    kinds.set(name, kind);
  }
  return [...kinds].map(([name, { by, program, codes }]) => ({ name, want: { by, program }, codes }));
}

const unprintable = (what: string): MetalflowError => new MetalflowError('dhcp_config_unprintable', { what });

/** iPXE fills it in; firmware does not, so a machine without a device is told by its address. */
const OWN_MAC = '${mac}';

/** The boot file of a machine that no device declares. */
export const unknownBootFile = (want: BootWant, place: BootPlace): string =>
  want.by === 'tftp' ? want.program : want.by === 'http' ? `${place.httpUrl}/ipxe/binary/${want.program}` : bootFileOf(want, OWN_MAC, place);

/** A name is for people who read the file: printable ASCII, one line, and no word of any configuration. */
const plainName = (name: string): string => name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 120);

/**
 * The site with its MACs in one spelling, and names that end no line.
 * @throws dhcp_config_unprintable, mac_invalid
 */
export function checkedSite(site: DhcpSite): DhcpSite {
  const { place, network } = site;
  if (!isIPv4(place.address)) throw unprintable('--server-address has to be an IPv4 address');
  if (!ABSOLUTE_URL.test(place.httpUrl)) throw unprintable('METALFLOW_ASSETS_URL has to be http(s)://host[:port][/path]');
  // The field of a DHCP packet holds 128 bytes with the NUL that ends it.
  const longest = Math.max(...CLIENT_KINDS.map(({ want }) => bootFileOf(want, '00:00:00:00:00:00', place).length));
  if (longest >= FILE_BYTES) {
    throw unprintable(`the boot plane's URL is too long: boot files of ${longest} characters, at most ${FILE_BYTES - 1} fit a DHCP packet; set a shorter METALFLOW_ASSETS_URL`);
  }
  if (network) checkNetwork(network, place.address);
  return { ...site, devices: site.devices.map((device) => ({ ...device, name: plainName(device.name), macs: device.macs.map(normalizeMac) })) };
}

function checkNetwork({ network, prefix, pool }: DhcpNetwork, server: string): void {
  const base = numberOf(network);
  const size = 2 ** (32 - prefix);
  if (base % size !== 0) throw unprintable(`--subnet ${network}/${prefix} has host bits`);
  if (!pool) return;
  const [from, to] = [numberOf(pool.from), numberOf(pool.to)];
  if (from > to) throw unprintable('--pool ends before it begins');
  // The first and the last address of a network are no machine's.
  if (from <= base || to >= base + size - 1) throw unprintable(`--pool is not within ${network}/${prefix}`);
  if (from <= numberOf(server) && numberOf(server) <= to) throw unprintable(`--pool holds the boot plane's own address ${server}`);
}

export const numberOf = (address: string): number => address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
export const netmaskOf = (prefix: number): string => [24, 16, 8, 0].map((shift) => Math.floor((2 ** 32 - 2 ** (32 - prefix)) / 2 ** shift) % 256).join('.');
