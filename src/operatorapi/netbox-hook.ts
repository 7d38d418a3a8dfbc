/**
 * What a NetBox webhook says, as far as metalflow cares: which device to read again. Nothing in it is believed beyond that.
 * Shapes of NetBox 4.x: `object_type` since 4.4, `model` until 4.5, `request.id` (before 4.7 `request_id`).
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { DeviceHint } from '../contracts/operator.js';
import { issuesText } from '../contracts/primitives.js';
import { rawChoice, readDesiredAction } from '../domain/desired-action.js';
import { MetalflowError } from '../domain/errors.js';
import { canonicalInstant } from '../domain/instant.js';
import { readJson } from '../domain/json.js';
import { REQUESTS } from '../domain/runs.js';

export type HookReading =
  /** `note`: what a person should know although the hint is taken. */
  | { readonly kind: 'hint'; readonly hint: DeviceHint; readonly note: string | null }
  | { readonly kind: 'ignored'; readonly why: string };

type ObjectKind = 'device' | 'interface' | 'mac' | 'address';

const KIND_OF_TYPE: ReadonlyMap<string, ObjectKind> = new Map([['dcim.device', 'device'], ['dcim.interface', 'interface'], ['dcim.macaddress', 'mac'], ['ipam.ipaddress', 'address']]);
const KIND_OF_MODEL: ReadonlyMap<string, ObjectKind> = new Map([['device', 'device'], ['interface', 'interface'], ['macaddress', 'mac'], ['ipaddress', 'address']]);
const EVENTS = ['created', 'updated', 'deleted'] as const;

/** Config contexts nest; a device's own representation does not. */
const HOOK_DEPTH = 100;

const Hook = z.object({
  event: z.string().max(100),
  timestamp: z.string().max(60).optional(),
  object_type: z.string().max(200).optional(),
  model: z.string().max(200).optional(),
  data: z.record(z.string(), z.unknown()),
  request: z.object({ id: z.string().max(200) }).optional(),
  request_id: z.string().max(200).optional(),
}).refine((hook) => hook.object_type !== undefined || hook.model !== undefined, { message: 'object_type is missing' });
type Hook = z.infer<typeof Hook>;

const Id = z.number().int().positive();

/** @throws body_invalid */
export function readHook(body: Buffer): HookReading {
  const json = readJson(body.toString('utf8'), HOOK_DEPTH);
  if (json.kind === 'refused') throw invalid(json.why);
  if (Array.isArray(json.value)) throw invalid('is a list; one event is expected');
  const parsed = Hook.safeParse(json.value);
  if (!parsed.success) throw invalid(issuesText(parsed.error));
  const hook = parsed.data;

  const kind = hook.object_type !== undefined ? KIND_OF_TYPE.get(hook.object_type) : KIND_OF_MODEL.get(hook.model!);
  if (kind === undefined) return { kind: 'ignored', why: `${hook.object_type ?? hook.model} is nothing metalflow reads` };
  const event = EVENTS.find((one) => one === hook.event);
  if (event === undefined) return { kind: 'ignored', why: `the event ${hook.event} changes no object` };
  const device = deviceIdOf(kind, hook.data);
  if (device === null) return { kind: 'ignored', why: `this ${kind} is on no device` };
  return {
    kind: 'hint',
    hint: { deviceId: String(device), lastUpdated: instantOf(hook, event), digest: digestOf(kind, event, hook), event },
    note: kind === 'device' && event !== 'deleted' ? noteOf(hook.data) : null,
  };
}

const invalid = (what: string): MetalflowError => new MetalflowError('body_invalid', { what });

/** A MAC or an address names its device through the interface it is on; one of a virtual machine names none. */
function deviceIdOf(kind: ObjectKind, data: Hook['data']): number | null {
  if (kind === 'device') {
    const id = Id.safeParse(data.id);
    if (!id.success) throw invalid('data.id is no device id');
    return id.data;
  }
  const holder = kind === 'interface' ? data : record(data.assigned_object);
  const id = Id.safeParse(record(holder.device).id);
  return id.success ? id.data : null;
}

const record = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});

/** A deletion does not move `last_updated`, so it is ordered by when NetBox queued it. */
function instantOf(hook: Hook, event: DeviceHint['event']): string {
  const updated = typeof hook.data.last_updated === 'string' ? canonicalInstant(hook.data.last_updated) : null;
  if (updated === null) throw invalid('data.last_updated is no instant');
  const queued = event === 'deleted' && hook.timestamp !== undefined ? canonicalInstant(hook.timestamp) : null;
  return queued !== null && queued > updated ? queued : updated;
}

/**
 * SHA-256 over what metalflow reads of the object, so that a save which touched none of it is nothing new (N1: tags).
 * While an action is asked the request's id is part of it: the same action asked again, after it was taken, is a new
 * request, and a rule that tells only of set actions never told of the taking.
 */
function digestOf(kind: ObjectKind, event: DeviceHint['event'], hook: Hook): string {
  const { data } = hook;
  const fields = record(data.custom_fields);
  const asked = readDesiredAction(fields.desired_action);
  const asks = kind === 'device' && (asked.action !== null || asked.unknown !== null);
  const parts: Readonly<Record<ObjectKind, () => unknown[]>> = {
    device: () => [
      data.name, rawChoice(data.status), record(data.site).slug, record(data.oob_ip).address, record(data.config_context).metalflow,
      ['desired_action', 'bmc_type', 'node_class', 'system_uuid', 'root_disk', 'wipe_disks', 'tpm_ek'].map((name) => rawChoice(fields[name]) ?? null),
    ],
    interface: () => [data.name, data.mgmt_only, data.mac_address, Array.isArray(data.mac_addresses) ? data.mac_addresses.map((one) => record(one).mac_address) : null],
    mac: () => [data.mac_address, data.assigned_object_id],
    address: () => [data.address, data.assigned_object_id],
  };
  const read = [kind, data.id, event === 'deleted', asks ? (hook.request?.id ?? hook.request_id ?? null) : null, parts[kind]()];
  return createHash('sha256').update(JSON.stringify(read)).digest('hex');
}

function noteOf(data: Hook['data']): string | null {
  const { unknown } = readDesiredAction(record(data.custom_fields).desired_action);
  return unknown === null ? null : `custom field desired_action holds ${JSON.stringify(unknown)}, which is none of ${REQUESTS.join(', ')}: it starts nothing`;
}
