/** What the node's metadata need of NetBox: tags, addresses with their prefix, and `metalflow` of the config context. Pure. */
import { z } from 'zod';
import { NetworkStatement, SecretReference, SshKey, type DeviceMetadata, type NodeInterface } from '../contracts/metadata.js';
import { parseMac } from '../domain/mac.js';
import { fieldInvalid, member, withoutPrefix } from './custom-fields.js';
import type { RestAddress, RestDevice, RestInterface } from './shapes.js';

/** Roles of addresses that several machines share; a node that configured one would take it from the others. */
const SHARED_ROLES: readonly string[] = ['anycast', 'vip', 'vrrp', 'hsrp', 'glbp', 'carp'];

/** Members of `metalflow` in the config context, each read on its own so that the error names it. */
const CONTEXT = { ssh_keys: z.array(SshKey).max(64), user_data: SecretReference, network: NetworkStatement } as const;

/** @param hosts without the BMC's @param addresses without the BMC's */
export function toInterfaces(hosts: readonly RestInterface[], addresses: readonly RestAddress[]): NodeInterface[] {
  return hosts.flatMap((one): NodeInterface[] => {
    const mac = parseMac(one.mac_address ?? one.mac_addresses?.[0]?.mac_address ?? '');
    const own = addresses.filter((address) => address.assigned_object_type === 'dcim.interface' && address.assigned_object_id === one.id);
    const alone = own.filter(({ role }) => !SHARED_ROLES.includes(role ?? ''));
    return mac === null ? [] : [{ name: one.name, mac, addresses: alone.map(({ address }) => address) }];
  });
}

/** @throws device_invalid naming the member of the config context */
export function readMetadata(rest: RestDevice, interfaces: readonly NodeInterface[]): DeviceMetadata {
  const primary = [rest.primary_ip4, rest.primary_ip6].flatMap((one) => (one ? [withoutPrefix(one.address)] : []));
  return {
    tags: (rest.tags ?? []).map(({ slug }) => slug),
    interfaces: [...interfaces],
    primary,
    sshKeys: contextMember(rest, 'ssh_keys') ?? [],
    userData: contextMember(rest, 'user_data'),
    network: contextMember(rest, 'network'),
  };
}

function contextMember<N extends keyof typeof CONTEXT>(rest: RestDevice, name: N): z.infer<(typeof CONTEXT)[N]> | null {
  const context = member(member(rest.config_context, 'metalflow'), name);
  if (context === undefined || context === null) return null;
  const read = CONTEXT[name].safeParse(context);
  if (read.success) return read.data as z.infer<(typeof CONTEXT)[N]>;
  const { path, message } = read.error.issues[0]!;
  throw fieldInvalid(['config_context.metalflow', name, ...path.map(String)].join('.'), message);
}
