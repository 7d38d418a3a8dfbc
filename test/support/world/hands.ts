/** What a person does behind metalflow's back, with Temporal's own program. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestTemporal } from './temporal.js';
import type { World } from './world.js';

const execute = promisify(execFile);

export type ResetPoint = 'FirstWorkflowTask' | 'LastWorkflowTask';

export interface Hands {
  /** @returns the Temporal run id that begins with the reset */
  reset(workflowId: string, to: ResetPoint): Promise<string>;
  terminate(workflowId: string): Promise<void>;
  cancel(workflowId: string): Promise<void>;
  /** The Temporal run id that bears the workflow id now. */
  runIdOf(workflowId: string): Promise<string>;
}

export function handsOn(test: TestTemporal, { namespace, temporal }: Pick<World, 'namespace' | 'temporal'>): Hands {
  const workflow = async (command: string, workflowId: string, ...args: string[]): Promise<void> => {
    await execute(test.cli, ['workflow', command, '--workflow-id', workflowId, '--address', test.server.address, '--namespace', namespace, ...args], { timeout: 120_000 });
  };
  const runIdOf = async (workflowId: string): Promise<string> => (await temporal.client.workflow.getHandle(workflowId).describe()).runId;
  return {
    runIdOf,
    async reset(workflowId, to) {
      await workflow('reset', workflowId, '--type', to, '--reason', 'test');
      return runIdOf(workflowId);
    },
    terminate: (workflowId) => workflow('terminate', workflowId, '--reason', 'test'),
    cancel: (workflowId) => workflow('cancel', workflowId),
  };
}
