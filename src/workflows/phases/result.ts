/** How a phase ends. */
import type { Failure } from '../../domain/errors.js';
import type { RunPhase } from '../../domain/runs.js';
import type { RunOutcome } from '../../contracts/messages.js';

export type PhaseResult =
  | { readonly kind: 'next' }
  /** A stop was asked for, and this is a safe point. */
  | { readonly kind: 'stopped' }
  /** The run goes on from an earlier phase. */
  | { readonly kind: 'back'; readonly to: RunPhase; readonly because: string }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'ended'; readonly outcome: Omit<RunOutcome, 'destroyed'> };

export const NEXT: PhaseResult = { kind: 'next' };
export const STOPPED: PhaseResult = { kind: 'stopped' };
export const back = (to: RunPhase, because: string): PhaseResult => ({ kind: 'back', to, because });
export const failed = (why: Failure): PhaseResult => ({ kind: 'failed', failure: why });
export const ended = (outcome: Omit<RunOutcome, 'destroyed'>): PhaseResult => ({ kind: 'ended', outcome });
