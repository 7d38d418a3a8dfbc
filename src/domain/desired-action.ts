/** What `desired_action` asks, in every shape NetBox has shown it (field failure N5). */
import { isRequest } from './requests.js';
import type { Request } from './runs.js';

export interface AskedAction {
  readonly action: Request | null;
  /** The value as text when it is none of ours; then `action` is null and nothing may start. */
  readonly unknown: string | null;
}

/** The raw value of a select field: since NetBox 4.7 it reads as `{value, label}`, before as plain text. */
export const rawChoice = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && 'value' in value ? value.value : value;

/** A field that was never set is absent, one that was cleared is null or empty: all three ask nothing. Case and blanks are not forgiven. */
export function readDesiredAction(value: unknown): AskedAction {
  const raw = rawChoice(value);
  if (raw === undefined || raw === null || raw === '') return { action: null, unknown: null };
  if (typeof raw === 'string' && isRequest(raw)) return { action: raw, unknown: null };
  const text = typeof raw === 'string' ? raw : JSON.stringify(raw);
  return { action: null, unknown: text.slice(0, 200) };
}
