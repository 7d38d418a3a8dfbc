/** Temporal's client as the house sees it: the port of contracts over @temporalio/client. */
import { Client, Connection, isGrpcServiceError, WorkflowFailedError, WorkflowNotFoundError, ActivityNotFoundError, type ConnectionOptions } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { MetalflowError } from '../domain/errors.js';
import { lifecycleId, WORKFLOW_QUEUE, WORKFLOWS, type RunOutcome } from '../contracts/messages.js';
import type { TemporalPort, WorkflowLook } from '../contracts/temporal-port.js';

export interface TemporalTarget {
  readonly connection: ConnectionOptions;
  readonly namespace: string;
}

/** TEMPORAL_ADDRESS, _NAMESPACE, TLS, profiles: as every Temporal program reads them. */
export function temporalTarget(env: Readonly<Record<string, string>>, embeddedAddress: string | null): TemporalTarget {
  if (embeddedAddress) return { connection: { address: embeddedAddress }, namespace: 'default' };
  const { connectionOptions, namespace } = loadClientConnectConfig({ overrideEnvVars: { ...env } });
  return { connection: { ...connectionOptions, address: connectionOptions.address ?? '127.0.0.1:7233' }, namespace: namespace ?? 'default' };
}

export interface TemporalClient extends TemporalPort {
  readonly client: Client;
  readonly connection: Connection;
  readonly namespace: string;
  close(): Promise<void>;
}

const unavailable = (error: unknown): MetalflowError => new MetalflowError('temporal_unavailable', { why: (error as Error).message }, { cause: error });

/** @throws temporal_unavailable unless `lazy` */
export async function connectTemporal(target: TemporalTarget, { lazy = false }: { lazy?: boolean } = {}): Promise<TemporalClient> {
  const connection = lazy ? Connection.lazy(target.connection) : await Connection.connect(target.connection).catch((error: unknown) => { throw unavailable(error); });
  const client = new Client({ connection, namespace: target.namespace });
  return { client, connection, namespace: target.namespace, ...createTemporalPort(client), close: () => connection.close() };
}

const CLOSED: Readonly<Record<string, Extract<WorkflowLook, { kind: 'closed' }>['how']>> = {
  COMPLETED: 'completed', FAILED: 'failed', CANCELLED: 'cancelled', TERMINATED: 'terminated', TIMED_OUT: 'timed-out', CONTINUED_AS_NEW: 'continued',
};

export function createTemporalPort(client: Client): TemporalPort {
  /** What does not answer is away; what answers NotFound is absent. */
  async function asked<R>(work: () => Promise<R>, absent: R): Promise<R> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof WorkflowNotFoundError || error instanceof ActivityNotFoundError) return absent;
      if (isGrpcServiceError(error) && error.code === 5) return absent;
      throw unavailable(error);
    }
  }

  return {
    look: (workflowId) =>
      asked<WorkflowLook>(async () => {
        const { runId, status } = await client.workflow.getHandle(workflowId).describe();
        return status.name === 'RUNNING' ? { kind: 'running', runId } : { kind: 'closed', runId, how: CLOSED[status.name] ?? 'failed' };
      }, { kind: 'absent' }),

    async awaitOutcome(workflowId, signal) {
      const handle = client.workflow.getHandle(workflowId);
      // Settled in any case: an aborted wait must not become an unhandled rejection.
      const result = handle.result().then((outcome: RunOutcome) => ({ kind: 'completed' as const, outcome }), (error: unknown) => {
        if (error instanceof WorkflowFailedError || error instanceof WorkflowNotFoundError) return { kind: 'ended-otherwise' as const };
        throw unavailable(error);
      });
      const aborted = new Promise<never>((_, reject) => {
        if (signal.aborted) reject(signal.reason as Error);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      result.catch(() => undefined);
      aborted.catch(() => undefined);
      return Promise.race([result, aborted]);
    },

    signal: (workflowId, name, payload) =>
      asked(async () => {
        await client.workflow.getHandle(workflowId).signal(name, payload);
        return 'delivered' as const;
      }, 'absent'),

    async signalLifecycle(deviceId, name, payload) {
      try {
        await client.workflow.signalWithStart(WORKFLOWS.lifecycle, {
          workflowId: lifecycleId(deviceId), taskQueue: WORKFLOW_QUEUE, args: [{ deviceId }], signal: name, signalArgs: [payload], staticSummary: `lifecycle of NetBox device ${deviceId}`,
        });
      } catch (error) {
        throw unavailable(error);
      }
    },

    complete: (taskToken, result) =>
      asked(async () => {
        await client.activity.complete(Buffer.from(taskToken, 'base64'), result);
        return 'delivered' as const;
      }, 'absent'),

    async heartbeat(taskToken, details) {
      try {
        await client.activity.heartbeat(Buffer.from(taskToken, 'base64'), details);
        return 'on';
      } catch (error) {
        const name = (error as Error).name;
        if (name === 'ActivityCancelledError' || name === 'ActivityResetError') return 'cancelled';
        if (name === 'ActivityPausedError') return 'paused';
        if (name === 'ActivityNotFoundError') return 'absent';
        throw unavailable(error);
      }
    },
  };
}
