/** What went wrong in an activity, in the words of the error table. */
import { ActivityFailure, ApplicationFailure, TimeoutFailure, isCancellation } from '@temporalio/workflow';
import { failure, isErrorCode, type ErrorCode, type Failure } from '../domain/errors.js';

/** The table's code of a failed activity; null for anything the table does not know. */
export function codeOf(error: unknown): ErrorCode | null {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof ApplicationFailure && isErrorCode(cause.type) ? cause.type : null;
}

export const isTimeout = (error: unknown): boolean => error instanceof ActivityFailure && error.cause instanceof TimeoutFailure;

/**
 * The failure as a person reads it. An activity that ran out of time is named by its last error when it had one; one that nobody took
 * by the site whose queue it waited in.
 */
export function failureOf(error: unknown, site = '?'): Failure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START') return failure('site_without_worker', { site });
  const known = cause instanceof TimeoutFailure && cause.cause ? cause.cause : cause;
  if (known instanceof ApplicationFailure && isErrorCode(known.type)) {
    const [details] = (known.details ?? []) as [Failure?];
    return details ?? failure(known.type);
  }
  return failure('unexpected', { what: known instanceof Error ? `${known.name}: ${known.message}`.slice(0, 300) : String(known).slice(0, 300) });
}

/** The run lost its fence: what it has in mind is void, and only the store says what is true. */
export type FenceLoss = 'superseded' | 'run-closed' | 'stale';
export function fenceLossOf(error: unknown): FenceLoss | null {
  switch (codeOf(error)) {
    case 'attempt_superseded': return 'superseded';
    case 'run_closed': return 'run-closed';
    case 'run_stale': return 'stale';
    default: return null;
  }
}

export { isCancellation };
