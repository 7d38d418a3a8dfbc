/** Instants as NetBox writes them: with microseconds, which Date would drop, and with `T` or a blank in the middle (N3). */

const FORM = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})$/i;

/**
 * `2026-11-30T11:49:53.374774Z` from any of the forms; null when it is none or names no zone.
 * Two results compare as text.
 */
export function canonicalInstant(text: string): string | null {
  const match = FORM.exec(text.trim());
  if (!match) return null;
  const [, day, time, fraction = '', zone] = match;
  const seconds = Date.parse(`${day}T${time}${zone!.replace(/^([+-]\d{2}):?(\d{2})$/, '$1:$2').toUpperCase()}`);
  if (Number.isNaN(seconds)) return null;
  return `${new Date(seconds).toISOString().slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}
