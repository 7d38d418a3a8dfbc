/**
 * What the power of a node should read in each state. Only a run acts on power, and a run is open in three states alone; everywhere else
 * what does not fit is told to people: a node that is found off is never powered on because of it.
 */
import type { PowerWord } from './power.js';
import type { LifecycleState } from './states.js';

export interface ExpectationRow {
  /** null: any power fits. */
  readonly expects: 'on' | 'off' | null;
  readonly because: string;
}

export const EXPECTED_POWER = {
  planned: { expects: null, because: 'nobody has said yet what becomes of it' },
  available: { expects: 'off', because: 'it is wiped and nothing runs on it' },
  queued: { expects: null, because: 'its request is still to come' },
  provisioning: { expects: null, because: 'its run owns the power' },
  active: { expects: 'on', because: 'its system runs' },
  wiping: { expects: null, because: 'its run owns the power' },
  retiring: { expects: null, because: 'its run owns the power' },
  failed: { expects: null, because: 'its run left it as it was' },
  held: { expects: null, because: 'a person decides' },
  quarantined: { expects: null, because: 'a person decides' },
  maintenance: { expects: null, because: 'a person works on it' },
  retired: { expects: 'off', because: 'it was seen off twice' },
  'retired-unproven': { expects: 'off', because: 'it was said to be gone' },
  withdrawn: { expects: null, because: 'it is no longer ours' },
} as const satisfies { readonly [state in LifecycleState]: ExpectationRow };

export interface PowerDrift {
  readonly state: LifecycleState;
  readonly expected: 'on' | 'off';
  readonly reads: 'on' | 'off' | 'sleeping';
}

/** `no-expectation`: any power fits the state, so nothing is said of what was read. */
export type PowerVerdict = { readonly kind: 'fits' } | { readonly kind: 'no-expectation' } | { readonly kind: 'drift'; readonly drift: PowerDrift } | { readonly kind: 'says-nothing' };

/** Does this reading fit the state? Silence says nothing, neither way. */
export function judgePower(state: LifecycleState, power: PowerWord): PowerVerdict {
  const { expects: expected } = EXPECTED_POWER[state] as ExpectationRow;
  if (expected === null) return { kind: 'no-expectation' };
  if (power === 'unknown' || power === 'settling') return { kind: 'says-nothing' };
  return power === expected ? { kind: 'fits' } : { kind: 'drift', drift: { state, expected, reads: power } };
}

export const isSameDrift = (a: PowerDrift | null, b: PowerDrift | null): boolean => a?.state === b?.state && a?.expected === b?.expected && a?.reads === b?.reads;
