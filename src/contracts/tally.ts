/** What the store counts of the life of all nodes, for Prometheus. Every label is of a table of the domain, so their number is bounded. */
import type { ErrorCode } from '../domain/errors.js';
import type { LimitName } from '../domain/limits.js';
import type { RunEnd, RunKind, RunPhase } from '../domain/runs.js';

/** One thing that happened. `seconds`: how long what ended with it took. */
export type Tallied =
  | { readonly what: 'run-ended'; readonly labels: { readonly kind: RunKind; readonly end: RunEnd; readonly code: ErrorCode | 'none' }; readonly seconds: number }
  | { readonly what: 'phase-left'; readonly labels: { readonly kind: RunKind; readonly phase: RunPhase }; readonly seconds: number }
  | { readonly what: 'held'; readonly labels: { readonly code: ErrorCode } }
  | { readonly what: 'limit-passed'; readonly labels: { readonly limit: LimitName } };

export type TallyName = Tallied['what'];

/** All that happened with the same labels since the store was made. */
export interface TallyRow {
  readonly what: TallyName;
  readonly labels: Readonly<Record<string, string>>;
  readonly times: number;
  readonly seconds: number;
}

export interface Tally {
  /** @throws store_unavailable */
  all(): Promise<TallyRow[]>;
}
