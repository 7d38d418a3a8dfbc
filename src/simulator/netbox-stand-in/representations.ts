/** NetBox 4.7's REST representations and webhook snapshots. `base` is the server's URL in REST answers and empty in webhooks. */
import { choice, showFields, type FieldSet } from './custom-fields.js';
import type { AddressRecord, DeviceRecord, InterfaceRecord, JournalRecord } from './records.js';

const linked = (base: string, path: string, display: string): { url: string; display: string } => ({ url: `${base}/api/${path}/`, display });

const nestedAddress = (base: string, one: AddressRecord): Record<string, unknown> => ({
  id: one.id, ...linked(base, `ipam/ip-addresses/${one.id}`, one.address), family: one.address.includes(':') ? { value: 6, label: 'IPv6' } : { value: 4, label: 'IPv4' },
  address: one.address, dns_name: '', description: '',
});

const nestedDevice = (base: string, device: DeviceRecord): Record<string, unknown> => ({
  id: device.id, ...linked(base, `dcim/devices/${device.id}`, device.name), name: device.name, description: '',
});

export function showDevice(base: string, fields: FieldSet, device: DeviceRecord): Record<string, unknown> {
  return {
    id: device.id,
    ...linked(base, `dcim/devices/${device.id}`, device.name),
    display_url: `${base}/dcim/devices/${device.id}/`,
    name: device.name,
    device_type: { id: 1, ...linked(base, 'dcim/device-types/1', 'BM1000'), model: 'BM1000', slug: 'bm1000' },
    role: { id: 1, ...linked(base, 'dcim/device-roles/1', 'Bare metal'), name: 'Bare metal', slug: 'bare-metal' },
    tenant: null,
    platform: null,
    serial: '',
    site: { id: 1, ...linked(base, 'dcim/sites/1', device.site), name: device.site, slug: device.site, description: '' },
    rack: null,
    status: choice(device.status),
    primary_ip: null,
    primary_ip4: null,
    primary_ip6: null,
    oob_ip: device.oobIp && nestedAddress(base, device.oobIp),
    description: '',
    comments: '',
    config_context: device.localContext ?? {},
    local_context_data: device.localContext,
    tags: [],
    custom_fields: showFields(fields, device.customFields),
    created: device.created,
    last_updated: device.lastUpdated,
    interface_count: device.interfaces.length,
  };
}

export function showInterface(base: string, device: DeviceRecord, one: InterfaceRecord): Record<string, unknown> {
  const mac = one.mac && { id: one.mac.id, ...linked(base, `dcim/mac-addresses/${one.mac.id}`, one.mac.address), mac_address: one.mac.address, description: '' };
  return {
    id: one.id,
    ...linked(base, `dcim/interfaces/${one.id}`, one.name),
    device: nestedDevice(base, device),
    name: one.name,
    type: { value: '1000base-t', label: '1000BASE-T (1GE)' },
    enabled: true,
    mac_address: one.mac?.address ?? null,
    primary_mac_address: mac,
    mac_addresses: mac ? [mac] : [],
    mgmt_only: one.mgmtOnly,
    tags: [],
    custom_fields: {},
    created: device.created,
    last_updated: device.created,
  };
}

const assigned = (base: string, device: DeviceRecord, one: InterfaceRecord): Record<string, unknown> => ({
  assigned_object_type: 'dcim.interface',
  assigned_object_id: one.id,
  assigned_object: { id: one.id, ...linked(base, `dcim/interfaces/${one.id}`, one.name), device: nestedDevice(base, device), name: one.name },
});

export const showAddress = (base: string, device: DeviceRecord, one: InterfaceRecord, address: AddressRecord): Record<string, unknown> => ({
  ...nestedAddress(base, address), ...assigned(base, device, one), status: choice('active'), tags: [], custom_fields: {}, created: device.created, last_updated: device.created,
});

export const showMac = (base: string, device: DeviceRecord, one: InterfaceRecord): Record<string, unknown> => ({
  id: one.mac!.id, ...linked(base, `dcim/mac-addresses/${one.mac!.id}`, one.mac!.address), mac_address: one.mac!.address, ...assigned(base, device, one),
  is_primary: true, tags: [], custom_fields: {}, created: device.created, last_updated: device.created,
});

export const showJournalEntry = (base: string, entry: JournalRecord): Record<string, unknown> => ({
  id: entry.id, ...linked(base, `extras/journal-entries/${entry.id}`, entry.created), assigned_object_type: 'dcim.device', assigned_object_id: entry.deviceId,
  created: entry.created, kind: choice(entry.kind), comments: entry.comments, tags: [], custom_fields: {}, last_updated: entry.created,
});

/** `snapshots` of a webhook: raw values, ids for relations, custom fields only when they were ever set, no last_updated. */
export const snapshot = (device: DeviceRecord): Record<string, unknown> => ({
  created: device.created, name: device.name, site: 1, device_type: 1, role: 1, status: device.status, oob_ip: device.oobIp?.id ?? null,
  local_context_data: device.localContext, custom_fields: device.customFields, tags: [],
});
