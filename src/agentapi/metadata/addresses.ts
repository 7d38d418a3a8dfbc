/** Which of a node's addresses is the one that is meant: local or public, first or of an interface. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { MetadataSubject } from '../../contracts/metadata.js';

/** Not routed on the internet: RFC 1918, 6598, 3927, 5735 and 6890 for IPv4. */
const PRIVATE_IPV4 = new BlockList();
const PRIVATE_NETWORKS = [
  ['10.0.0.0', 8], ['172.16.0.0', 12], ['192.168.0.0', 16], ['100.64.0.0', 10], ['169.254.0.0', 16],
  ['127.0.0.0', 8], ['192.0.0.0', 24], ['0.0.0.0', 8], ['224.0.0.0', 3],
] as const;
for (const [network, prefix] of PRIVATE_NETWORKS) PRIVATE_IPV4.addSubnet(network, prefix);
/** Global unicast, RFC 4291 §2.4. */
const GLOBAL_IPV6 = new BlockList();
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6');

export const isPublic = (address: string): boolean => (isIPv4(address) ? !PRIVATE_IPV4.check(address) : GLOBAL_IPV6.check(address, 'ipv6'));
export const bare = (address: string): string => address.split('/')[0]!;

export interface NodeAddresses {
  /** NetBox's primary one, else the first that is not public, else the first. */
  readonly localIpv4: string | null;
  readonly publicIpv4: string | null;
  readonly publicIpv6: string | null;
}

export function addressesOf({ primary, addresses }: Pick<MetadataSubject, 'primary' | 'addresses'>): NodeAddresses {
  const all = [...primary, ...addresses];
  const ipv4 = all.filter((one) => isIPv4(one));
  return {
    localIpv4: primary.find((one) => isIPv4(one)) ?? ipv4.find((one) => !isPublic(one)) ?? ipv4[0] ?? null,
    publicIpv4: ipv4.find(isPublic) ?? null,
    publicIpv6: all.filter((one) => isIPv6(one)).find(isPublic) ?? null,
  };
}

/** Of the interface that has the node's local address, else of the first one known. */
export function macOf(subject: Pick<MetadataSubject, 'primary' | 'addresses' | 'interfaces' | 'macs'>): string | null {
  const { localIpv4 } = addressesOf(subject);
  const holder = subject.interfaces.find(({ addresses }) => addresses.some((one) => bare(one) === localIpv4));
  return holder?.mac ?? subject.interfaces[0]?.mac ?? subject.macs[0] ?? null;
}

const quads = (bits: number): string => [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.');
const maskBits = (prefix: number): number => (prefix === 0 ? 0 : (~0 << (32 - prefix)) >>> 0);

/** `192.0.2.0/24` and `255.255.255.0` of `192.0.2.10/24`; null without a prefix length, or for IPv6. */
export function ipv4Network(address: string): { readonly cidr: string; readonly netmask: string } | null {
  const [ip = '', prefix] = address.split('/');
  if (!isIPv4(ip) || prefix === undefined) return null;
  const value = ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const mask = maskBits(Number(prefix));
  return { cidr: `${quads((value & mask) >>> 0)}/${prefix}`, netmask: quads(mask) };
}
