/** What the workflows say of a node right now. The store alone answers too: a page about a node must not need Temporal. */
import type { LifecycleView, RunView } from '../contracts/messages.js';
import type { NodeWorkflows } from '../contracts/operator.js';
import { failure, isMetalflowError, type Failure } from '../domain/errors.js';
import { ask, LIMITS_MS } from './ask.js';

export interface Live {
  readonly lifecycle: LifecycleView | null;
  readonly run: RunView | null;
  /** Why nothing is shown, when Temporal does not answer. */
  readonly problem: Failure | null;
}

export async function readLive(workflows: NodeWorkflows, deviceId: string, run: number | null): Promise<Live> {
  try {
    const [lifecycle, runView] = await ask('temporal_unavailable', LIMITS_MS.read, () =>
      Promise.all([workflows.lifecycle(deviceId), run === null ? null : workflows.run(deviceId, run)]));
    return { lifecycle, run: runView, problem: null };
  } catch (error) {
    return { lifecycle: null, run: null, problem: isMetalflowError(error) ? failure(error.code, error.details) : failure('temporal_unavailable') };
  }
}
