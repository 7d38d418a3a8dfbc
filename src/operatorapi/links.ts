/** Links into the Temporal UI. */
import { lifecycleId, runWorkflowId } from '../contracts/messages.js';

export interface Links {
  lifecycle(deviceId: string): string | null;
  run(deviceId: string, run: number): string | null;
}

/** @param temporalUi base with its namespace, or null when no UI is known */
export function createLinks(temporalUi: string | null): Links {
  const to = (workflowId: string): string | null => (temporalUi === null ? null : `${temporalUi.replace(/\/+$/, '')}/workflows/${encodeURIComponent(workflowId)}`);
  return { lifecycle: (deviceId) => to(lifecycleId(deviceId)), run: (deviceId, run) => to(runWorkflowId(deviceId, run)) };
}
