/** What the stand-in remembers. Ids are NetBox's integers. */
import { checkFields, type FieldSet } from './custom-fields.js';
import { notFound, Refusal } from './refusal.js';
import { etagOf, type Stamps } from './stamps.js';

export interface AddressRecord {
  readonly id: number;
  /** With prefix length. */
  readonly address: string;
}

export interface InterfaceRecord {
  readonly id: number;
  readonly name: string;
  readonly mgmtOnly: boolean;
  readonly mac: { readonly id: number; readonly address: string } | null;
  readonly addresses: readonly AddressRecord[];
}

export interface DeviceRecord {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly site: string;
  /** Raw values; a field that was never set is absent. */
  readonly customFields: Readonly<Record<string, unknown>>;
  readonly localContext: Readonly<Record<string, unknown>> | null;
  readonly oobIp: AddressRecord | null;
  readonly interfaces: readonly InterfaceRecord[];
  readonly created: string;
  readonly lastUpdated: string;
}

export interface JournalRecord {
  readonly id: number;
  readonly deviceId: number;
  readonly kind: string;
  readonly comments: string;
  readonly created: string;
}

/** A device as a person declares it. */
export interface NewDevice {
  readonly name: string;
  readonly status?: string;
  readonly site?: string;
  readonly customFields?: Readonly<Record<string, unknown>>;
  readonly interfaces?: readonly { readonly name: string; readonly mac?: string; readonly mgmtOnly?: boolean; readonly addresses?: readonly string[] }[];
  /** With prefix length. It is put on the interface that has it already, else on a new `mgmt_only` one. */
  readonly oobIp?: string;
  /** `metalflow.bmc_port` of the local context. */
  readonly bmcPort?: number;
}

/** The body of a PATCH, as far as the stand-in takes it. */
export interface DeviceChange {
  readonly name?: unknown;
  readonly status?: unknown;
  readonly custom_fields?: unknown;
  readonly local_context_data?: unknown;
}

const STATUSES = ['offline', 'active', 'planned', 'staged', 'failed', 'inventory', 'decommissioning'];

export interface Change {
  readonly before: DeviceRecord | null;
  readonly after: DeviceRecord | null;
}

export function createRecords(options: { fields: FieldSet; stamp: Stamps }) {
  const devices = new Map<number, DeviceRecord>();
  const journal: JournalRecord[] = [];
  let lastId = 0;
  const nextId = (): number => ++lastId;

  function checkStatus(status: unknown): string {
    if (typeof status === 'string' && STATUSES.includes(status)) return status;
    throw new Refusal(400, { status: [`${JSON.stringify(status)} is not a valid choice.`] });
  }

  function add(device: NewDevice): Change & { readonly after: DeviceRecord } {
    const customFields = checkFields(options.fields, device.customFields ?? {});
    const status = checkStatus(device.status ?? 'planned');
    const id = nextId();
    const declared = [...(device.interfaces ?? [])];
    if (device.oobIp !== undefined && !declared.some((one) => one.addresses?.includes(device.oobIp!))) {
      declared.push({ name: 'bmc', mgmtOnly: true, addresses: [device.oobIp] });
    }
    const interfaces = declared.map((one): InterfaceRecord => ({
      id: nextId(),
      name: one.name,
      mgmtOnly: one.mgmtOnly ?? false,
      mac: one.mac === undefined ? null : { id: nextId(), address: one.mac.toUpperCase() },
      addresses: (one.addresses ?? []).map((address) => ({ id: nextId(), address })),
    }));
    const at = options.stamp();
    const after: DeviceRecord = {
      id, name: device.name, status, site: device.site ?? 'lab', customFields, interfaces, created: at, lastUpdated: at,
      localContext: device.bmcPort === undefined ? null : { metalflow: { bmc_port: device.bmcPort } },
      oobIp: interfaces.flatMap((one) => one.addresses).find((one) => one.address === device.oobIp) ?? null,
    };
    devices.set(id, after);
    return { before: null, after };
  }

  function find(id: number): DeviceRecord {
    const device = devices.get(id);
    if (!device) throw notFound('Device');
    return device;
  }

  /** All or nothing. @throws Refusal 400, 404, 412 */
  function patch(id: number, change: DeviceChange, ifMatch?: string): Change & { readonly after: DeviceRecord } {
    const before = find(id);
    if (ifMatch !== undefined && ifMatch !== etagOf(before.lastUpdated)) throw new Refusal(412, { detail: 'Precondition failed.' }, { etag: etagOf(before.lastUpdated) });
    if (change.name !== undefined && typeof change.name !== 'string') throw new Refusal(400, { name: ['Not a valid string.'] });
    const after: DeviceRecord = {
      ...before,
      ...(change.name !== undefined && { name: change.name }),
      ...(change.status !== undefined && { status: checkStatus(change.status) }),
      ...(change.local_context_data !== undefined && { localContext: change.local_context_data as DeviceRecord['localContext'] }),
      customFields: change.custom_fields === undefined ? before.customFields : { ...before.customFields, ...checkFields(options.fields, change.custom_fields) },
      // A PATCH that changes nothing still moves last_updated.
      lastUpdated: options.stamp(),
    };
    devices.set(id, after);
    return { before, after };
  }

  function remove(id: number): Change & { readonly before: DeviceRecord } {
    const before = find(id);
    devices.delete(id);
    return { before, after: null };
  }

  function addJournalEntry(entry: Pick<JournalRecord, 'deviceId' | 'kind' | 'comments'>): JournalRecord {
    find(entry.deviceId);
    const record = { ...entry, id: nextId(), created: options.stamp() };
    journal.push(record);
    return record;
  }

  return {
    add, find, patch, remove, addJournalEntry,
    all: (): DeviceRecord[] => [...devices.values()].sort((a, b) => a.id - b.id),
    journal: (deviceId: number): JournalRecord[] => journal.filter((entry) => entry.deviceId === deviceId),
  };
}
export type Records = ReturnType<typeof createRecords>;
