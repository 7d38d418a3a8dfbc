/** Everything that Temporal keeps of a world's workflows. */
import type { World } from './world.js';

export interface Kept {
  readonly workflowId: string;
  readonly runId: string;
  readonly type: string;
  readonly status: string;
  readonly history: Awaited<ReturnType<ReturnType<World['temporal']['client']['workflow']['getHandle']>['fetchHistory']>>;
  /** As the server describes it now: memo, search attributes, pending activities with their heartbeats. */
  readonly description: unknown;
}

/** How many events a workflow has when nothing of it is under way: all that was said to it is done, and nothing is added before more is said. */
export async function lengthAtRest(world: World, workflowId: string): Promise<number> {
  const { temporal, namespace } = world;
  return world.until(`${workflowId} at rest`, async () => {
    const { pendingWorkflowTask, pendingActivities, workflowExecutionInfo } = await temporal.connection.workflowService.describeWorkflowExecution({ namespace, execution: { workflowId } });
    return !pendingWorkflowTask && !pendingActivities?.length && Number(workflowExecutionInfo!.historyLength);
  });
}

/** @param query of Temporal's list filter; all workflows by default. Lists are eventually consistent: wait for what has to be there */
export async function keptByTemporal({ temporal, namespace }: World, query?: string): Promise<Kept[]> {
  const kept: Kept[] = [];
  for await (const { workflowId, runId, type, status } of temporal.client.workflow.list(query ? { query } : {})) {
    const history = await temporal.client.workflow.getHandle(workflowId, runId).fetchHistory();
    const description = await temporal.connection.workflowService.describeWorkflowExecution({ namespace, execution: { workflowId, runId } });
    kept.push({ workflowId, runId, type, status: status.name, history, description });
  }
  return kept;
}
