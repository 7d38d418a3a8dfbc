/** Reads custom fields. Absent, null and blank are the same: not set. What cannot be read names its field. */
import { BMC_BOOTS, BMC_TYPES, type BmcAddress } from '../contracts/device.js';
import { rawChoice } from '../domain/desired-action.js';
import { MetalflowError } from '../domain/errors.js';
import { parseFingerprint } from '../domain/fingerprint.js';
import { isOneOf } from '../domain/states.js';
import { parseUuid } from '../domain/uuid.js';

export type CustomFields = Readonly<Record<string, unknown>>;

export const fieldInvalid = (field: string, what: string): MetalflowError => new MetalflowError('device_invalid', { field, what });

/** Text of a text or select field, without blanks around it; null when it is not set. @throws device_invalid */
export function readText(fields: CustomFields, name: string): string | null {
  const raw = rawChoice(fields[name]);
  if (raw === undefined || raw === null) return null;
  if (typeof raw !== 'string') throw fieldInvalid(name, `holds ${JSON.stringify(raw).slice(0, 100)}, which is no text`);
  return raw.trim() || null;
}

/** The machine's UUID; null when it is not set, or holds what vendors leave when they set none. @throws device_invalid */
export function readSystemUuid(fields: CustomFields): string | null {
  const text = readText(fields, 'system_uuid');
  if (text === null) return null;
  const uuid = parseUuid(text);
  const unset = /^(?:[0-]+|[f-]+)$/i.test(text) && text.length === 36;
  if (uuid === null && !unset) throw fieldInvalid('system_uuid', `holds ${text.slice(0, 60)}, which is no UUID`);
  return uuid;
}

/**
 * Serials or WWNs of a disk list: a JSON list (of a JSON field, or as text), or text with commas, blanks or new lines
 * between. A serial that holds a blank can only be written in a JSON list.
 * @throws device_invalid
 */
export function readDiskList(fields: CustomFields, name: string): string[] {
  const raw = fields[name];
  if (raw === undefined || raw === null) return [];
  const list = typeof raw === 'string' ? splitText(raw, name) : raw;
  if (!Array.isArray(list)) throw fieldInvalid(name, 'is neither a list nor text');
  const ids = list.map((entry: unknown) => {
    const id = rawChoice(entry);
    if (typeof id !== 'string' || id.trim() === '') throw fieldInvalid(name, `holds ${JSON.stringify(entry).slice(0, 60)}, which is no serial or WWN`);
    return id.trim();
  });
  return [...new Set(ids)];
}

function splitText(text: string, name: string): unknown {
  if (!text.trimStart().startsWith('[')) return text.split(/[\s,]+/).filter((part) => part !== '');
  try {
    return JSON.parse(text);
  } catch {
    // Split at blanks it would become serials with brackets in them, and nobody would see why no disk matches.
    throw fieldInvalid(name, 'starts like a JSON list and is none');
  }
}

/**
 * Where the BMC answers, and how: `bmc_type`, the device's oob_ip, and what `metalflow` of its config context says of it (what
 * has no place on an address in NetBox, and often goes for a whole rack): `bmc_port` when the port is not the type's own,
 * `bmc_tls`, `bmc_fingerprint` (in any usual spelling), `bmc_system`, `bmc_boot`. null when no type is set, or no address. A `manual` BMC needs none.
 * @throws device_invalid
 */
export function readBmc(fields: CustomFields, oobAddress: string | null, configContext: unknown): BmcAddress | null {
  const type = readText(fields, 'bmc_type');
  if (type === null) return null;
  if (!isOneOf(BMC_TYPES, type)) throw fieldInvalid('bmc_type', `holds ${type.slice(0, 60)}; known are ${BMC_TYPES.join(', ')}`);
  if (type === 'manual') return { type, host: '' };
  if (oobAddress === null) return null;
  const port = readContext(configContext, 'bmc_port', isPort, 'no TCP port');
  const tls = readContext(configContext, 'bmc_tls', isFlag, 'neither true nor false');
  const pin = readContext(configContext, 'bmc_fingerprint', isFingerprint, 'no SHA-256 fingerprint of a certificate (64 hex digits, with colons or without)');
  const address = { type, host: withoutPrefix(oobAddress), ...(port !== null && { port }), ...(tls !== null && { tls }), ...(pin !== null && { fingerprint: parseFingerprint(pin)! }) };
  if (type === 'amt') return address;
  const systemUuid = readSystemUuid(fields);
  const known = { ...address, ...(systemUuid !== null && { systemUuid }) };
  if (type === 'ipmi') return known;
  const system = readContext(configContext, 'bmc_system', isSystemName, 'no name of a system of at most 200 characters');
  const boot = readContext(configContext, 'bmc_boot', isBoot, `none of ${BMC_BOOTS.join(', ')}`);
  return { ...known, ...(system !== null && { system }), ...(boot !== null && { boot }) };
}

const isPort = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isFingerprint = (value: unknown): value is string => typeof value === 'string' && parseFingerprint(value) !== null;
const isSystemName = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '' && value.length <= 200;
const isBoot = (value: unknown): value is (typeof BMC_BOOTS)[number] => typeof value === 'string' && isOneOf(BMC_BOOTS, value);

/** A member of `metalflow` in the config context; null when it is not set. @throws device_invalid */
function readContext<T>(configContext: unknown, name: string, fits: (value: unknown) => value is T, what: string): T | null {
  const value = member(member(configContext, 'metalflow'), name);
  if (value === undefined || value === null) return null;
  if (!fits(value)) throw fieldInvalid(`config_context.metalflow.${name}`, `holds ${JSON.stringify(value).slice(0, 60)}, which is ${what}`);
  return value;
}

export const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;

/** `192.0.2.10` of `192.0.2.10/24`. */
export const withoutPrefix = (address: string): string => address.split('/')[0]!;
