/** The NetBox client: desired state in, status and journal out; no decisions. */
import type { Device } from '../contracts/device.js';
import type { ChangedDevice, NetboxClient, WriteResult } from '../contracts/netbox.js';
import type { NetboxRequests } from '../contracts/operator.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import { canonicalInstant } from '../domain/instant.js';
import { fieldInvalid } from './custom-fields.js';
import { toDevice, toWiring } from './mapping.js';
import { createRequests } from './requests.js';
import { createRest, shaped, type Query, type RestOptions } from './rest.js';
import { RestAddress, RestDevice, RestInterface, RestStamp } from './shapes.js';

/** What a PATCH of a device may carry; select fields take their raw value, never `{value, label}` (N5). */
export interface DevicePatch {
  readonly status?: string;
  readonly custom_fields?: Readonly<Record<string, string | null>>;
}

/** dcim.ObjectChange.message is a CharField(200); a longer one would make the whole write a 400. */
const MESSAGE_LENGTH = 200;
const PAGE = '100';
const LONG_PAGE = '500';

const devicePath = (deviceId: string): string => `/api/dcim/devices/${encodeURIComponent(deviceId)}/`;

/**
 * Speaks NetBox 4.6 or later (ETag and If-Match). Methods throw `netbox_unreachable` for every way NetBox can fail to
 * answer, and `device_invalid` for a field that cannot be read or written.
 */
export function createNetboxClient(options: RestOptions): NetboxClient & NetboxRequests {
  const rest = createRest(options);

  async function readDevice(deviceId: string): Promise<Device | null> {
    const answer = await rest.get(devicePath(deviceId));
    if (answer.status === 404) return null;
    const device = shaped(RestDevice, answer.body, 'GET device');
    const [interfaces, addresses] = await Promise.all([
      rest.all('/api/dcim/interfaces/', { device_id: deviceId, limit: PAGE }, RestInterface),
      rest.all('/api/ipam/ip-addresses/', { device_id: deviceId, limit: PAGE }, RestAddress),
    ]);
    return toDevice(device, toWiring(device, interfaces, addresses), answer.etag);
  }

  async function readDevices(deviceIds: readonly string[]): Promise<ReadonlyMap<string, Device | MetalflowError>> {
    const read = new Map<string, Device | MetalflowError>();
    if (deviceIds.length === 0) return read;
    const devices = await rest.all('/api/dcim/devices/', { id: deviceIds, limit: LONG_PAGE }, RestDevice);
    if (devices.length === 0) return read;
    const hanging = { device_id: devices.map(({ id }) => String(id)), limit: LONG_PAGE };
    // In the order in which each would be read alone, which is that of the device's metadata.
    const [interfaces, addresses] = await Promise.all([rest.all('/api/dcim/interfaces/', hanging, RestInterface), rest.all('/api/ipam/ip-addresses/', hanging, RestAddress)]);
    for (const device of devices) {
      const own = interfaces.filter((one) => one.device?.id === device.id);
      const ids = new Set(own.map(({ id }) => id));
      read.set(String(device.id), readable(() => toDevice(device, toWiring(device, own, addresses.filter((one) => ids.has(one.assigned_object_id ?? -1))), null)));
    }
    return read;
  }

  async function patchDevice(device: Device, patch: DevicePatch, message: string): Promise<WriteResult> {
    if (device.etag === null) throw new MetalflowError('netbox_unreachable', { why: 'it gave no ETag, without which a write could undo a person\'s; NetBox 4.6 or later is needed' });
    const answer = await rest.send('PATCH', devicePath(device.id), { ...patch, changelog_message: message.slice(0, MESSAGE_LENGTH) }, device.etag);
    if (answer.status === 412) return { kind: 'conflict' };
    if (answer.status === 404) return { kind: 'gone' };
    if (answer.status === 400) throw refusedField(answer.body, patch);
    // A PATCH of the device touches no interface, so what hangs on them is as it was read.
    return { kind: 'written', device: toDevice(shaped(RestDevice, answer.body, 'PATCH device'), { ...device, interfaces: device.metadata?.interfaces }, answer.etag) };
  }

  async function listChanged(since: string | null): Promise<{ devices: ChangedDevice[]; newest: string | null }> {
    const queries: Query[] = since === null ? [{}] : [{ cf_desired_action__empty: 'false' }, { last_updated__gte: since }];
    const devices = new Map<string, ChangedDevice>();
    let newest = since === null ? null : canonicalInstant(since) ?? since;
    for (const query of queries) {
      // Cursor pagination (ordered by id) does not skip a device when another one changes between two pages.
      for (const found of await rest.all('/api/dcim/devices/', { ...query, fields: 'id,last_updated', start: '0', limit: LONG_PAGE }, RestStamp)) {
        devices.set(String(found.id), { id: String(found.id), lastUpdated: found.last_updated });
        const at = canonicalInstant(found.last_updated);
        if (at !== null && (newest === null || at > newest)) newest = at;
      }
    }
    return { devices: [...devices.values()], newest };
  }

  return {
    readDevice,
    readDevices,
    writeDevice: (device, { status, fields, message }) =>
      patchDevice(device, { ...(status !== undefined && { status }), ...(fields !== undefined && { custom_fields: { ...fields } }) }, message),
    async addJournalEntry(deviceId, kind, comments) {
      const entry = { assigned_object_type: 'dcim.device', assigned_object_id: Number(deviceId), kind, comments };
      const answer = await rest.send('POST', '/api/extras/journal-entries/', entry);
      if (answer.status !== 201) throw fieldInvalid('journal', JSON.stringify(answer.body).slice(0, 300));
    },
    listChanged,
    ...createRequests({ readDevice, patchDevice }),
    close: () => rest.close(),
  };
}

function readable(read: () => Device): Device | MetalflowError {
  try {
    return read();
  } catch (error) {
    if (isMetalflowError(error)) return error;
    throw error;
  }
}

/** The 400 of a field that the site did not create, or whose choice it does not have, names the field in its text. */
function refusedField(body: unknown, patch: DevicePatch): MetalflowError {
  const text = JSON.stringify(body).slice(0, 300);
  const written = [...Object.keys(patch.custom_fields ?? {}), ...(patch.status !== undefined ? ['status'] : [])];
  return fieldInvalid(written.find((name) => text.includes(name)) ?? written.join(', '), `NetBox refuses the write: ${text}`);
}
