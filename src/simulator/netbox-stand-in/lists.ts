/** NetBox's lists: filters, cursor and offset pages, `fields`. */
import { Refusal } from './refusal.js';
import type { DeviceRecord } from './records.js';

/** A name that is repeated means any of its values. */
export type ListQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

export const valuesOf = (query: ListQuery, name: string): string[] => [query[name] ?? []].flat();
const first = (query: ListQuery, name: string): string | undefined => valuesOf(query, name)[0];

const PLAIN = new Set(['limit', 'offset', 'start', 'fields', 'ordering', 'omit', 'exclude', 'brief']);

/** Filters of /api/dcim/devices/. @throws Refusal 400 for a filter that the stand-in does not know, rather than ignoring it */
export function filterDevices(devices: readonly DeviceRecord[], query: ListQuery): DeviceRecord[] {
  return Object.keys(query).reduce((left, name) => {
    if (PLAIN.has(name)) return left;
    const filters = valuesOf(query, name).map((value) => filterOf(name, value));
    return left.filter((device) => filters.some((fits) => fits(device)));
  }, [...devices]);
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
  const limit = Math.min(Math.max(Number(first(query, 'limit') ?? 50) || 50, 1), 1000);
  const next = (change: Record<string, string>): string => {
    const asked: ListQuery = { ...query, limit: String(limit), ...change };
    return `${url}?${new URLSearchParams(Object.keys(asked).flatMap((name) => valuesOf(asked, name).map((value): [string, string] => [name, value])))}`;
  };
  const start = first(query, 'start');
  if (start !== undefined) {
    const from = rows.filter((row) => Number(row.id) >= Number(start));
    const following = from[limit];
    return { count: null, next: following ? next({ start: String(following.id) }) : null, previous: null, results: pick(from.slice(0, limit), query) };
  }
  const offset = Number(first(query, 'offset') ?? 0) || 0;
  const more = offset + limit < rows.length;
  return { count: rows.length, next: more ? next({ offset: String(offset + limit) }) : null, previous: null, results: pick(rows.slice(offset, offset + limit), query) };
}

function pick(rows: readonly object[], query: ListQuery): object[] {
  const names = first(query, 'fields')?.split(',');
  return names ? rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name)))) : [...rows];
}
