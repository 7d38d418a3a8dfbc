/** The configuration of dnsmasq's DHCP server: lines for a file of its own, to be named by `conf-file` or put into `dnsmasq.d`. */
import { bootFileOf } from './boot-file.js';
import { HTTP_CLIENT, OPTION, PXE_CLIENT } from './options.js';
import { checkedSite, CLIENT_KINDS, FIRMWARE_KINDS, IPXE_KIND, netmaskOf, unknownBootFile, type ClientKind, type DhcpSite } from './site.js';

const tag = (...parts: string[]): string => ['metalflow', ...parts].join('-');
const HTTP_TAG = tag('httpclient');
const PXE_TAG = tag('pxeclient');

const comment = (text: string): string => `# ${text}`;

/** `tag:a,tag:!b`: every one has to hold. */
function conditionsOf({ name, want }: ClientKind): string[] {
  if (want.by === 'script') return [tag(name)];
  return [`!${tag(IPXE_KIND.name)}`, want.by === 'http' ? HTTP_TAG : PXE_TAG, tag(name)];
}

/** @throws dhcp_config_unprintable, mac_invalid */
export function dnsmasqConfig(given: DhcpSite): string {
  const { place, devices, unknownMac, network } = checkedSite(given);
  const boot = (kind: ClientKind, which: string, file: string): string =>
    `dhcp-boot=${[which, ...conditionsOf(kind)].map((name) => `tag:${name}`).join(',')},${file},,${place.address}`;
  const rangeOf = ({ network: first, prefix, pool }: NonNullable<DhcpSite['network']>): string =>
    pool ? `dhcp-range=${pool.from},${pool.to},${netmaskOf(prefix)}` : `dhcp-range=${first},static,${netmaskOf(prefix)}`;
  const lines = [
    comment(`metalflow: boot files of the boot plane ${place.httpUrl}, TFTP ${place.address}`),
    ...(network ? [rangeOf(network)] : []),
    `dhcp-match=set:${tag(IPXE_KIND.name)},${OPTION.ipxe}`,
    `dhcp-userclass=set:${tag(IPXE_KIND.name)},iPXE`,
    `dhcp-vendorclass=set:${PXE_TAG},${PXE_CLIENT}`,
    `dhcp-vendorclass=set:${HTTP_TAG},${HTTP_CLIENT}`,
    ...FIRMWARE_KINDS.flatMap(({ name, codes }) => codes.map((code) => `dhcp-match=set:${tag(name)},option:client-arch,${code}`)),
    comment('UEFI takes a URL only from a server that calls itself so'),
    `dhcp-option-force=tag:${HTTP_TAG},tag:!${tag(IPXE_KIND.name)},${OPTION.vendorClass},${HTTP_CLIENT}`,
    ...devices.flatMap(({ deviceId, name, macs }) => [
      '',
      comment(`device ${deviceId}: ${name}`),
      ...macs.flatMap((mac) => {
        const which = tag(mac.replaceAll(':', ''));
        return [`dhcp-host=${mac},set:${which}`, ...CLIENT_KINDS.map((kind) => boot(kind, which, bootFileOf(kind.want, mac, place)))];
      }),
    ]),
    ...(unknownMac === 'menu'
      ? ['', comment('machines that no device declares (METALFLOW_UNKNOWN_MAC=menu)'), ...CLIENT_KINDS.map((kind) => boot(kind, '!known', unknownBootFile(kind.want, place)))]
      : []),
  ];
  return `${lines.join('\n')}\n`;
}
