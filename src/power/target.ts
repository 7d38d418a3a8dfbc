/** What is behind the words of a person: a device and its BMC, or a bare address. */
import { lookup } from 'node:dns/promises';
import type { BmcAddress, Device } from '../contracts/device.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NodeDirectory } from '../contracts/operator.js';
import type { BmcTarget, HandSubject } from '../contracts/power-by-hand.js';
import type { Stores } from '../contracts/store.js';
import { MetalflowError } from '../domain/errors.js';
import { bmcKey, bmcName } from './lease.js';

export interface TargetStores {
  readonly nodes: Pick<NodeDirectory, 'find'>;
  readonly devices: Pick<Stores['devices'], 'atBmc'>;
}

export interface Found {
  readonly address: BmcAddress;
  readonly device: Device | null;
  readonly subject: HandSubject;
}

/** @throws node_not_found, node_ambiguous, device_invalid, netbox_unreachable, store_unavailable */
export async function findTarget(target: BmcTarget, stores: TargetStores, netbox: Pick<NetboxClient, 'readDevice'>): Promise<Found> {
  const { name, type, port, fingerprint } = target;
  if (type !== null) {
    const address: BmcAddress = { type, host: name, ...(port !== null && { port }), ...(fingerprint !== null && { fingerprint }) };
    return { address, device: null, subject: { device: null, bmc: { type, address: bmcName(address) } } };
  }
  const node = await stores.nodes.find(name);
  const id = node?.deviceId ?? (/^\d{1,10}$/.test(name) ? name : null);
  const device = id === null ? null : await netbox.readDevice(id);
  if (device === null) throw new MetalflowError('node_not_found', { node: name });
  if (device.bmc === null) throw new MetalflowError('device_invalid', { field: 'bmc_type', what: 'says no BMC' });
  const address = { ...device.bmc, ...(port !== null && { port }), ...(fingerprint !== null && { fingerprint }) };
  return { address, device, subject: { device: { id: device.id, name: device.name, openRun: node?.openRun ?? null }, bmc: { type: address.type, address: bmcName(address) } } };
}

/**
 * A command to a bare address passes by everything that is known of a device; so it is refused where the address is some device's.
 * @throws bmc_is_a_devices
 */
export async function refuseADevicesBmc({ address, device }: Found, stores: TargetStores): Promise<void> {
  if (device !== null) return;
  const resolved = await lookup(address.host, { all: true }).catch(() => []);
  const devices = await stores.devices.atBmc([address.host, ...resolved.map((one) => one.address)]);
  // Behind one host (a chassis, NAT) every port may be another machine; however the host is spelt, it is the same here.
  const owner = devices.find(({ bmc }) => bmcKey({ ...bmc, host: address.host }) === bmcKey(address));
  if (owner) throw new MetalflowError('bmc_is_a_devices', { address: bmcName(address), node: owner.name });
}
