/** The custom fields of a site, and NetBox's own checks when one is written. */
import { BMC_TYPES } from '../../contracts/device.js';
import { REQUESTS } from '../../domain/runs.js';
import { Refusal } from './refusal.js';

export type FieldKind = { readonly type: 'select'; readonly choices: readonly string[] } | { readonly type: 'text' } | { readonly type: 'json' };
export type FieldSet = Readonly<Record<string, FieldKind>>;

/** As `docs` tells a site to create them. */
export const SITE_FIELDS: FieldSet = {
  desired_action: { type: 'select', choices: REQUESTS },
  bmc_type: { type: 'select', choices: BMC_TYPES },
  node_class: { type: 'text' },
  system_uuid: { type: 'text' },
  root_disk: { type: 'text' },
  wipe_disks: { type: 'json' },
  lifecycle_state: { type: 'text' },
  lifecycle_url: { type: 'text' },
  tpm_ek: { type: 'text' },
};

/** @throws Refusal 400 with NetBox's body */
export function checkFields(fields: FieldSet, written: unknown): Record<string, unknown> {
  if (typeof written !== 'object' || written === null || Array.isArray(written)) throw new Refusal(400, { custom_fields: ['Custom field data must be passed as a mapping.'] });
  const unknown = Object.keys(written).filter((name) => !Object.hasOwn(fields, name));
  if (unknown.length > 0) {
    throw new Refusal(400, { custom_fields: Object.fromEntries(unknown.map((name) => [name, `Custom field '${name}' does not exist for this object type.`])) });
  }
  for (const [name, value] of Object.entries(written)) {
    const why = value === null ? null : whyInvalid(fields[name]!, name, value);
    if (why !== null) throw new Refusal(400, { __all__: [`Invalid value for custom field '${name}': ${why}`] });
  }
  return { ...written };
}

function whyInvalid(kind: FieldKind, name: string, value: unknown): string | null {
  switch (kind.type) {
    case 'json': return null;
    case 'text': return typeof value === 'string' ? null : 'Value must be a string.';
    case 'select': return typeof value === 'string' && kind.choices.includes(value) ? null : `Invalid choice (${typeof value === 'string' ? value : JSON.stringify(value)}) for choice set ${name}.`;
  }
}

/** What NetBox 4.7 shows on read: every field of the type, `{value, label}` for a select. */
export function showFields(fields: FieldSet, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, kind]) => {
    const value = values[name] ?? null;
    return [name, kind.type === 'select' && typeof value === 'string' ? choice(value) : value];
  }));
}

export const choice = (value: string): { value: string; label: string } => ({ value, label: value.charAt(0).toUpperCase() + value.slice(1) });
