/** Why an exchange with a BMC gave no usable answer, and whether its request may have been carried out all the same. */
import type { CommandResult } from '../contracts/bmc.js';
import type { BmcProblemCode } from '../domain/power.js';

export interface Problem {
  readonly code: BmcProblemCode;
  readonly why: string;
  /** `none`: the BMC surely did nothing. `possible`: it had the request with credentials, and its word on it is missing. */
  readonly effect: 'none' | 'possible';
  /** Fills the text of the code's row in the error table. */
  readonly details: Readonly<Record<string, string>>;
}

/** Either a value or the problem that stood in its way. */
export type Outcome<T> = { readonly kind: 'ok'; readonly value: T } | { readonly kind: 'problem'; readonly problem: Problem };

export const ok = <T>(value: T): Outcome<T> => ({ kind: 'ok', value });
export const problem = (code: BmcProblemCode, why: string, effect: Problem['effect'], details: Problem['details'] = {}): { kind: 'problem'; problem: Problem } => ({
  kind: 'problem',
  problem: { code, why, effect, details: { ...details, why } },
});

/** What a problem means for a command: never `refused` or `not-sent` where the machine may have obeyed. */
export function commandResult({ code, why, effect, details }: Problem): CommandResult {
  if (effect === 'possible') return { kind: 'unknown', why };
  return code === 'bmc_unreachable' ? { kind: 'not-sent', why } : { kind: 'refused', code, why, details };
}

/** What a problem means for a read. */
export const unknown = ({ code, why }: Problem): { kind: 'unknown'; code: Problem['code']; why: string } => ({ kind: 'unknown', code, why });
