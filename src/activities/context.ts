/** What every activity may ask of Temporal's activity context, in the house's words. */
import { randomUUID } from 'node:crypto';
import { ApplicationFailure, Context } from '@temporalio/activity';
import { isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import type { FenceRef } from '../contracts/store.js';
import { systemTime, type Caller, type Clock } from '../power/caller.js';

/** The run as a workflow names it; the Temporal ids come from the activity's own context and cannot be handed in. */
export interface RunRef {
  readonly deviceId: string;
  readonly run: number;
}

export function fenceRef({ deviceId, run }: RunRef): FenceRef {
  const execution = Context.current().info.workflowExecution;
  if (!execution) throw new MetalflowError('run_stale');
  return { deviceId, run, workflowId: execution.workflowId, temporalRunId: execution.runId };
}

export const heartbeat = (details: unknown): void => Context.current().heartbeat(details);
export const cancellationSignal = (): AbortSignal => Context.current().cancellationSignal;

/** Sleeps, and rejects with the cancellation when the activity is cancelled meanwhile. */
export const pause = (ms: number): Promise<void> => Context.current().sleep(ms);

export const activityClock: Clock = { ...systemTime, pause };

/** An activity that asks a BMC; it waits for its turn as long as Temporal lets it. */
export const activityCaller: Caller = {
  drawHolder() {
    const { workflowExecution, activityId } = Context.current().info;
    return `${workflowExecution?.workflowId}/${workflowExecution?.runId}/${activityId}/${randomUUID()}`;
  },
  cancelled: cancellationSignal,
  tell: heartbeat,
  teller() {
    const context = Context.current();
    return (details) => context.heartbeat(details);
  },
  patienceSeconds: null,
};

/** An error of the table as Temporal shows it: its code is the failure's type, its row decides whether it is tried again. */
export function toApplicationFailure(error: unknown): unknown {
  if (!isMetalflowError(error)) return error;
  return ApplicationFailure.create({ message: error.message, type: error.code, nonRetryable: !error.retryable, details: [error.toFailure() satisfies Failure], cause: error });
}
