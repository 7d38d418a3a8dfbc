/** A NetBox device, as metalflow reads it. Pure: REST representations in, a contract out. */
import { Device } from '../contracts/device.js';
import { readDesiredAction } from '../domain/desired-action.js';
import type { NodeInterface } from '../contracts/metadata.js';
import type { UnreadDevice } from '../contracts/netbox.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import { canonicalInstant } from '../domain/instant.js';
import { fieldInvalid, readBmc, readDiskList, readSystemUuid, readText, withoutPrefix } from './custom-fields.js';
import { readMetadata, toInterfaces } from './metadata.js';
import type { RestAddress, RestDevice, RestInterface } from './shapes.js';

/** What hangs on the device's interfaces; NetBox keeps it in objects of their own. */
export interface Wiring {
  readonly macs: readonly string[];
  readonly addresses: readonly string[];
  readonly interfaces?: readonly NodeInterface[];
}

/** Every MAC and address but those of the BMC: `mgmt_only` interfaces, and the device's oob_ip wherever it is assigned. */
export function toWiring(device: RestDevice, interfaces: readonly RestInterface[], addresses: readonly RestAddress[]): Wiring {
  const hosts = interfaces.filter((one) => !one.mgmt_only);
  const managed = new Set(interfaces.filter((one) => one.mgmt_only).map((one) => one.id));
  const isBmcs = (one: RestAddress): boolean =>
    one.id === device.oob_ip?.id || (one.assigned_object_type === 'dcim.interface' && managed.has(one.assigned_object_id ?? -1));
  return {
    macs: [...new Set(hosts.flatMap(macsOf).map((mac) => mac.toLowerCase()))],
    addresses: [...new Set(addresses.filter((one) => !isBmcs(one)).map((one) => withoutPrefix(one.address)))],
    interfaces: toInterfaces(hosts, addresses.filter((one) => !isBmcs(one))),
  };
}

const macsOf = (one: RestInterface): string[] => [...(one.mac_addresses ?? []).map(({ mac_address }) => mac_address), ...(one.mac_address ? [one.mac_address] : [])];

/** Names of Device's members that a person knows by another name in NetBox. */
const NETBOX_NAMES: Readonly<Record<string, string>> = {
  nodeClass: 'node_class', rootDisk: 'root_disk', wipeDisks: 'wipe_disks', tpmEk: 'tpm_ek', systemUuid: 'system_uuid',
  bmc: 'oob_ip', macs: 'interfaces', addresses: 'ip_addresses', metadata: 'interfaces', lastUpdated: 'last_updated',
};

/** A device without any of these has nothing to do with metalflow. */
const CLAIMS = ['desired_action', 'node_class', 'bmc_type'] as const;

/** @throws device_invalid naming the NetBox field; its details also say of which device, and what of it asks for metalflow (`UnreadDevice`) */
export function toDevice(rest: RestDevice, wiring: Wiring, etag: string | null): Device {
  try {
    return readFields(rest, wiring, etag);
  } catch (error) {
    if (!isMetalflowError(error) || error.code !== 'device_invalid') throw error;
    const unread: UnreadDevice = { name: rest.name ?? '', status: rest.status, claim: CLAIMS.find((name) => (rest.custom_fields[name] ?? '') !== '') ?? '' };
    throw new MetalflowError('device_invalid', { ...error.details, ...unread }, { cause: error });
  }
}

function readFields(rest: RestDevice, wiring: Wiring, etag: string | null): Device {
  const fields = rest.custom_fields;
  if (!rest.name) throw fieldInvalid('name', 'is empty');
  const asked = readDesiredAction(fields.desired_action);
  const candidate = {
    id: String(rest.id),
    name: rest.name,
    status: rest.status,
    site: rest.site.slug,
    nodeClass: readText(fields, 'node_class'),
    desiredAction: asked.action,
    unknownAction: asked.unknown,
    systemUuid: readSystemUuid(fields),
    rootDisk: readText(fields, 'root_disk'),
    wipeDisks: readDiskList(fields, 'wipe_disks'),
    tpmEk: readText(fields, 'tpm_ek'),
    bmc: readBmc(fields, rest.oob_ip?.address ?? null, rest.config_context),
    macs: wiring.macs,
    addresses: wiring.addresses,
    metadata: readMetadata(rest, wiring.interfaces ?? []),
    lastUpdated: canonicalInstant(rest.last_updated) ?? rest.last_updated,
    etag,
  };
  const device = Device.safeParse(candidate);
  if (device.success) return device.data;
  const issue = device.error.issues[0]!;
  const member = String(issue.path[0] ?? '');
  throw fieldInvalid(NETBOX_NAMES[member] ?? member, issue.message);
}
