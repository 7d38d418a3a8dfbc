/** The operatorapi role: webhook, nodes, verbs, metrics, health. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WorkflowNotFoundError, WorkflowUpdateFailedError, type Client } from '@temporalio/client';
import { createRunPlanner } from '../activities/index.js';
import type { Config } from '../config/index.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import { isOneOf } from '../domain/states.js';
import { lifecycleId, RUN_VERBS, runWorkflowId, SIGNALS, STATE_QUERY, TAKING_UP, type LifecycleView, type RunView, type VerbAnswer } from '../contracts/messages.js';
import { OperatorTokens, type NetboxRequests, type NodeWorkflows, type ReadyCheck } from '../contracts/operator.js';
import type { NetboxClient } from '../contracts/netbox.js';
import { createOperatorApi } from '../operatorapi/operator-api.js';
import type { Store } from '../store/index.js';
import type { Logger } from '../telemetry/log.js';
import type { Libraries } from './libraries.js';
import { addFleetGauges, type Metrics } from './metrics.js';
import { crashPointOf } from './open-store.js';
import { createCloser, listen, urlOf, type RunningRole } from './role.js';
import type { TemporalClient } from './temporal.js';

export interface OperatorRole extends RunningRole {
  readonly url: string;
}

export interface OperatorDeps {
  readonly config: Config;
  readonly store: Store;
  readonly temporal: TemporalClient;
  readonly netbox: NetboxClient & NetboxRequests;
  readonly libraries: Libraries;
  readonly temporalUi: string | null;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** @throws port_in_use */
export async function startOperatorApi({ config, store, temporal, netbox, libraries, temporalUi, metrics, log }: OperatorDeps): Promise<OperatorRole> {
  const closer = createCloser();
  addFleetGauges(metrics, store);
  const workflows = createNodeWorkflows(temporal, store);
  const server = createOperatorApi({
    hooks: store.hooks, nodes: store.nodes, logs: store.logs, workflows, planner: createRunPlanner({ stores: store, netbox, ...libraries }),
    netboxRequests: netbox, webhookSecret: config.netboxWebhookSecret,
    tokens: () => readTokens(config.secretsDir), temporalUi, metrics: () => metrics.registry.metrics(), log, crash: crashPointOf(config), trustedProxies: config.trustedProxies,
    ready: () => Promise.all([check('store', () => store.nodes.ping()), check('temporal', () => workflows.ping())]),
  });
  const port = await listen(server, 'the operator plane', config.operatorBindAddress, config.operatorPort);
  closer.add(() => server.close());
  const url = urlOf('http', config.operatorBindAddress, port);
  log.info({ url }, 'operatorapi is up');
  return { url, close: () => closer.close() };
}

async function check(name: string, ask: () => Promise<void>): Promise<ReadyCheck> {
  return ask().then(() => ({ name, ok: true }), (error: Error) => ({ name, ok: false, why: error.message }));
}

/** Read for every request: a token that was taken out is out at once. No file, no tokens. */
async function readTokens(folder: string): Promise<OperatorTokens> {
  const text = await readFile(join(folder, 'operator-tokens.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{"tokens":[]}';
    throw error;
  });
  return OperatorTokens.parse(JSON.parse(text));
}

const NOT_OPEN = 'no workflow of this node is open';
/** A lifecycle takes a node up with one read of the store. */
const TAKE_UP_TRIES = 50;
const TAKE_UP_EVERY_MS = 100;

/** Temporal as the operator plane sees it. */
export function createNodeWorkflows({ client, connection, signalLifecycle }: TemporalClient, { nodes }: Pick<Store, 'nodes'>): NodeWorkflows {
  const query = async <View>(workflowId: string): Promise<View | null> => {
    try {
      return await client.workflow.getHandle(workflowId).query<View>(STATE_QUERY);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw new MetalflowError('temporal_unavailable', { why: (error as Error).message }, { cause: error });
    }
  };
  const ask = async (handle: ReturnType<Client['workflow']['getHandle']>, verb: string, input: object): Promise<VerbAnswer> => {
    try {
      return await handle.executeUpdate<VerbAnswer, [object]>(verb, { args: [input] });
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) throw new MetalflowError('verb_refused', { verb, why: NOT_OPEN });
      if (error instanceof WorkflowUpdateFailedError) throw new MetalflowError('verb_refused', { verb, why: (error.cause?.message ?? error.message).replace(/^verb_refused: /, '') });
      throw new MetalflowError('temporal_unavailable', { why: (error as Error).message }, { cause: error });
    }
  };
  return {
    lifecycle: (deviceId) => query<LifecycleView>(lifecycleId(deviceId)),
    run: (deviceId, run) => query<RunView>(runWorkflowId(deviceId, run)),
    async say(deviceId, verb, input) {
      const node = await nodes.find(deviceId);
      if (!node) throw new MetalflowError('node_not_found', { node: deviceId });
      const toRun = node.openRun !== null && isOneOf(RUN_VERBS, verb);
      let isStarted = toRun;
      for (let tries = 1; ; tries++) {
        try {
          return await sayOnce(deviceId, verb, input, toRun ? node.openRun : null);
        } catch (error) {
          const why = isMetalflowError(error) && error.code === 'verb_refused' ? error.details['why'] : null;
          if (why === NOT_OPEN && !isStarted) {
            // A lifecycle that is missing, because somebody terminated it or Temporal is a new one, is started by what is said to it.
            isStarted = true;
            await signalLifecycle(deviceId, SIGNALS.deviceChanged.name, { source: 'operator' });
          } else if (why === TAKING_UP && tries < TAKE_UP_TRIES) await new Promise((resolve) => setTimeout(resolve, TAKE_UP_EVERY_MS));
          else throw error;
        }
      }
    },
    signalLifecycle,
    async ping() {
      await connection.workflowService.getSystemInfo({}).catch((error: unknown) => {
        throw isMetalflowError(error) ? error : new MetalflowError('temporal_unavailable', { why: (error as Error).message });
      });
    },
  };

  /** @param run the open run that takes the verb, null for the lifecycle */
  async function sayOnce(deviceId: string, verb: string, input: object, run: number | null): Promise<VerbAnswer> {
    const toRun = run !== null;
    const handle = client.workflow.getHandle(toRun ? runWorkflowId(deviceId, run) : lifecycleId(deviceId));
    // A workflow takes only what was said to its present self: a reset would apply the update again.
    const { runId } = await handle.describe().catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) throw new MetalflowError('verb_refused', { verb, why: toRun ? 'the run is not there yet' : NOT_OPEN });
      throw new MetalflowError('temporal_unavailable', { why: (error as Error).message });
    });
    return ask(handle, verb, { ...input, runId });
  }
}
