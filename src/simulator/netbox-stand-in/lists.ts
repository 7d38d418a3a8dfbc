/** NetBox's lists: filters, cursor and offset pages, `fields`. */
import { Refusal } from './refusal.js';
import type { DeviceRecord } from './records.js';

export type ListQuery = Readonly<Record<string, string | undefined>>;

const PLAIN = new Set(['limit', 'offset', 'start', 'fields', 'ordering', 'omit', 'exclude', 'brief']);

/** Filters of /api/dcim/devices/. @throws Refusal 400 for a filter that the stand-in does not know, rather than ignoring it */
export function filterDevices(devices: readonly DeviceRecord[], query: ListQuery): DeviceRecord[] {
  return Object.entries(query).reduce((left, [name, value]) => (PLAIN.has(name) ? left : left.filter(filterOf(name, value ?? ''))), [...devices]);
}

function filterOf(name: string, value: string): (device: DeviceRecord) => boolean {
  const empty = /^cf_(\w+)__empty$/.exec(name);
  if (empty) return (device) => ((device.customFields[empty[1]!] ?? null) === null) === (value === 'true');
  const field = /^cf_(\w+)$/.exec(name);
  if (field) return (device) => device.customFields[field[1]!] === value;
  switch (name) {
    case 'id': return (device) => String(device.id) === value;
    case 'name': return (device) => device.name === value;
    case 'site': return (device) => device.site === value;
    case 'status': return (device) => device.status === value;
    case 'last_updated__gte': {
      const since = /Z$|[+-]\d\d:\d\d$/.test(value) ? micros(value) : Number.NaN;
      if (Number.isNaN(since)) throw new Refusal(400, { last_updated__gte: ['Enter a valid date/time.'] });
      return (device) => micros(device.lastUpdated) >= since;
    }
    default: throw new Refusal(400, { [name]: ['Unknown filter field'] });
  }
}

/** Date.parse drops what is below a millisecond. */
const micros = (text: string): number => Date.parse(text) * 1000 + Number((/\.\d{3}(\d{1,3})/.exec(text)?.[1] ?? '').padEnd(3, '0'));

/** One page. With `start` it is a cursor over ids and counts nothing, else an offset. */
export function page<T extends { readonly id: unknown }>(url: string, query: ListQuery, rows: readonly T[]): Record<string, unknown> {
  const limit = Math.min(Math.max(Number(query.limit ?? 50) || 50, 1), 1000);
  const next = (change: Record<string, string>): string => `${url}?${new URLSearchParams({ ...(query as Record<string, string>), limit: String(limit), ...change })}`;
  if (query.start !== undefined) {
    const from = rows.filter((row) => Number(row.id) >= Number(query.start));
    const following = from[limit];
    return { count: null, next: following ? next({ start: String(following.id) }) : null, previous: null, results: pick(from.slice(0, limit), query) };
  }
  const offset = Number(query.offset ?? 0) || 0;
  const more = offset + limit < rows.length;
  return { count: rows.length, next: more ? next({ offset: String(offset + limit) }) : null, previous: null, results: pick(rows.slice(offset, offset + limit), query) };
}

function pick(rows: readonly object[], query: ListQuery): object[] {
  const names = query.fields?.split(',');
  return names ? rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name)))) : [...rows];
}
