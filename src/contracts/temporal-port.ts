/** Temporal, seen from activities and the outbox; main gives the implementation over @temporalio/client. */
import type { RunOutcome } from './messages.js';

export type WorkflowLook =
  | { readonly kind: 'running'; readonly runId: string }
  | { readonly kind: 'closed'; readonly runId: string; readonly how: 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed-out' | 'continued' }
  | { readonly kind: 'absent' };

/** Every method throws `temporal_unavailable` (retryable) when Temporal does not answer. */
export interface TemporalPort {
  /** The newest run of the workflow id. */
  look(workflowId: string): Promise<WorkflowLook>;
  /** Waits for the end of the newest run of the id; resolves early when `signal` aborts (rejects with its reason). */
  awaitOutcome(workflowId: string, signal: AbortSignal): Promise<{ kind: 'completed'; outcome: RunOutcome } | { kind: 'ended-otherwise' }>;
  /** `absent` when no open workflow has the id. */
  signal(workflowId: string, name: string, payload: unknown): Promise<'delivered' | 'absent'>;
  /** Starts the lifecycle when it is not running, and signals it. */
  signalLifecycle(deviceId: string, name: string, payload: unknown): Promise<void>;
  /** Completes an asynchronous activity by task token; `absent` when the token is stale. */
  complete(taskToken: string, result: unknown): Promise<'delivered' | 'absent'>;
  /** Heartbeats one by task token; says what Temporal wants of it. */
  heartbeat(taskToken: string, details: unknown): Promise<'on' | 'paused' | 'cancelled' | 'absent'>;
}
