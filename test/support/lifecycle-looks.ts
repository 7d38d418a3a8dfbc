/** What tests of a lifecycle wait for. */
import type { WorkflowHandle } from '@temporalio/client';
import type { ErrorCode } from '../../src/domain/errors.js';
import type { LifecycleState } from '../../src/domain/states.js';
import { lifecycleId, type LifecycleView } from '../../src/contracts/messages.js';
import { until } from './until.js';
import { lifecycleView, type Bench } from './workflow-bench.js';

/** NetBox tells of the device. */
export const changed = (node: Bench): Promise<void> => node.signal(lifecycleId(node.deviceId), 'deviceChanged', { source: 'webhook' });
export const untilSeen = (handle: WorkflowHandle, what: string, fits: (view: LifecycleView) => boolean): Promise<LifecycleView> => until(what, async () => {
  const view = await lifecycleView(handle);
  if (!fits(view)) throw new Error(JSON.stringify(view));
  return view;
});
export const untilState = (handle: WorkflowHandle, state: LifecycleState): Promise<LifecycleView> => untilSeen(handle, state, (view) => view.state === state && (state !== 'active' || view.openRun === null));
export const untilHeld = (handle: WorkflowHandle, code: ErrorCode): Promise<LifecycleView> => untilSeen(handle, `held for ${code}`, ({ hold }) => hold?.code === code);
