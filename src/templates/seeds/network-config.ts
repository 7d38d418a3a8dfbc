/**
 * cloud-init's network-config, version 2 (its documentation, "Networking config Version 2"), from what NetBox says of the node. Only
 * where the site states its gateways: a static network without the way out would cut the node off, and DHCP needs no file.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { SeedSubject } from '../../contracts/agent-desk.js';
import type { NodeInterface } from '../../contracts/metadata.js';
import { yamlText } from './yaml-text.js';

/** What Linux takes as a name of an interface, without what a renderer could trip over. */
const LINUX_NAME = /^[A-Za-z][A-Za-z0-9._-]{0,14}$/;

function liesIn(gateway: string, network: string): boolean {
  const [address = '', prefix] = network.split('/');
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  if (prefix === undefined || (family === 'ipv4' ? !isIPv4(gateway) : !isIPv6(gateway))) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(prefix), family);
  return list.check(gateway, family);
}

/** null where the site states no network, or no interface has an address. */
export function networkConfig({ network }: SeedSubject): string | null {
  if (!network) return null;
  const { gateways, nameservers, search } = network.statement;
  const routed = new Set<string>();
  /** One default route a family: of two, the system would take any. */
  const routesOf = ({ addresses }: NodeInterface): { to: string; via: string }[] => gateways.flatMap((via) => {
    const to = isIPv4(via) ? '0.0.0.0/0' : '::/0';
    if (routed.has(to) || !addresses.some((address) => liesIn(via, address))) return [];
    routed.add(to);
    return [{ to, via }];
  });
  const configured = network.interfaces.filter(({ addresses }) => addresses.length > 0);
  if (configured.length === 0) return null;
  const ethernets = configured.map((one, index) => {
    const routes = routesOf(one);
    const isNamed = LINUX_NAME.test(one.name) && configured.filter(({ name }) => name === one.name).length === 1;
    return [isNamed ? one.name : `nic${index}`, {
      match: { macaddress: one.mac },
      // Renderers other than netplan know an interface by its name alone, so it is given the one NetBox has.
      ...(isNamed && { 'set-name': one.name }),
      addresses: one.addresses,
      ...(routes.length > 0 && { routes }),
      ...(index === 0 && (nameservers.length > 0 || search.length > 0) && { nameservers: { ...(nameservers.length > 0 && { addresses: nameservers }), ...(search.length > 0 && { search }) } }),
    }];
  });
  return yamlText({ version: 2, ethernets: Object.fromEntries(ethernets) as object });
}
