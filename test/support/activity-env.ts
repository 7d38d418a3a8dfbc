/** Runs an activity as Temporal would, for one Temporal run of a workflow; an activity that is expected to fail prints nothing. */
import type { Logger } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';

const nothing = (): void => undefined;
const quiet: Logger = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

export interface ActivityCaller {
  readonly workflowId: string;
  readonly temporalRunId: string;
  readonly taskToken?: string;
  /** @param cancel what Temporal does when the activity is no longer wanted */
  readonly onHeartbeat?: (details: unknown, cancel: () => void) => void;
}

/** @returns what the activity returns; it rejects with what the activity throws */
export function runActivity<Input, Output>(caller: ActivityCaller, activity: (input: Input) => Promise<Output>, input: Input): Promise<Output> {
  const env = new MockActivityEnvironment({ workflowExecution: { workflowId: caller.workflowId, runId: caller.temporalRunId }, activityId: '5', taskToken: Buffer.from(caller.taskToken ?? 'token') }, { logger: quiet });
  env.on('heartbeat', (details) => caller.onHeartbeat?.(details, () => env.cancel()));
  return env.run(activity as (input: unknown) => Promise<Output>, input);
}
