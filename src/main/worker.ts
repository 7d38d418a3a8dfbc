/** The worker role: workflows, activities, and the loops that deliver and keep. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, NativeConnection, Runtime, Worker, type NativeConnectionOptions, type WorkflowBundleOption } from '@temporalio/worker';
import {
  activityInterceptors, createBmcIdentityActivities, createImageActivities, createLifecycleActivities, createNetbootActivities, createNetboxActivities,
  createOrderActivities, createPlanningActivities, createPowerActivities, createPowerWatchActivities,
  createRunActivities, restartMissingLifecycles, type CentralActivities, type SiteActivities,
} from '../activities/index.js';
import { createCappedBmcFactory } from '../bmc/capped-factory.js';
import type { Config } from '../config/index.js';
import { lifecycleId, SEARCH_ATTRIBUTES, siteQueue, WORKFLOW_QUEUE } from '../contracts/messages.js';
import type { NetboxClient } from '../contracts/netbox.js';
import { bmcTimes } from '../domain/limits.js';
import type { Store } from '../store/index.js';
import type { Logger } from '../telemetry/log.js';
import { startDeliverer, startLoop } from './deliverer.js';
import { confirmInstallation, linkInstallation } from './installation-link.js';
import type { Libraries } from './libraries.js';
import { openBmcs } from './bmcs.js';
import { crashPointOf } from './open-store.js';
import { startOrderKeeper } from './order-keeper.js';
import { createCloser, type RunningRole } from './role.js';
import { ensurePowerWatch, ensureReconcile } from './schedules.js';
import type { TemporalClient, TemporalTarget } from './temporal.js';

export interface WorkerRole extends RunningRole {
  /** Rejects when a worker dies of itself. */
  readonly ended: Promise<void>;
}

export interface WorkerDeps {
  readonly config: Config;
  readonly store: Store;
  readonly temporal: TemporalClient;
  readonly target: TemporalTarget;
  readonly netbox: NetboxClient;
  readonly libraries: Libraries;
  readonly temporalUi: string | null;
  readonly log: Logger;
  /** Called with the wake of the deliverer, so that planes in this process need not wait for its next look. */
  readonly onWake: (wake: () => void) => void;
}

const WORKFLOW_BUNDLE = join(dirname(fileURLToPath(import.meta.url)), '..', 'workflow-bundle.js');

/** Held in the cache without a replay at each signal. */
const CACHED_WORKFLOWS = 1000;

const FORGET_EVERY_MS = 3_600_000;

/** @throws temporal_unavailable, store_unavailable */
export async function startWorker(deps: WorkerDeps): Promise<WorkerRole> {
  const { config, store, temporal, target, log } = deps;
  installRuntime(log);
  const closer = createCloser();
  try {
    await addSearchAttributes(temporal);
    const crash = crashPointOf(config);
    await confirmInstallation({ client: temporal.client, temporal, store: store.installation, log, crash });
    const deliverer = startDeliverer({ outbox: store.outbox, temporal, log, crash });
    closer.add(() => deliverer.close());
    deps.onWake(deliverer.wake);
    const keeper = startOrderKeeper({ orders: store.orders, temporal, limits: config.limits, woken: deliverer.wake, log });
    closer.add(() => keeper.close());

    const keeping = startLoop(FORGET_EVERY_MS, log, async () => {
      const forgotten = await store.forget(new Date(Date.now() - config.retentionDays * 86_400_000));
      if (forgotten > 0) log.info({ forgotten }, 'rows past their retention are forgotten');
    });
    closer.add(() => keeping.close());

    const connection = await NativeConnection.connect(target.connection as NativeConnectionOptions);
    closer.add(() => connection.close());
    const common = {
      connection, namespace: target.namespace, interceptors: { activity: [activityInterceptors({ crash, log })] },
      maxHeartbeatThrottleInterval: '2s' as const, stickyQueueScheduleToStartTimeout: config.limits.workflowHandover * 1000,
      shutdownGraceTime: '2s' as const, shutdownForceTime: '5s' as const,
    };
    const workflowBundle: WorkflowBundleOption = { code: await readFile(WORKFLOW_BUNDLE, 'utf8') };
    const central = await Worker.create({
      ...common, taskQueue: WORKFLOW_QUEUE, workflowBundle, activities: centralActivities(deps), maxCachedWorkflows: CACHED_WORKFLOWS, maxConcurrentActivityTaskExecutions: 1000,
    });
    const site = await Worker.create({ ...common, taskQueue: siteQueue(config.site), activities: siteActivities(deps), maxConcurrentActivityTaskExecutions: 500 });
    const running = [central.run(), site.run()];
    const ended = Promise.all(running).then(() => undefined);
    ended.catch((error: unknown) => log.error({ err: error }, 'a worker died'));
    closer.add(async () => {
      for (const worker of [central, site]) if (worker.getState() === 'RUNNING') worker.shutdown();
      await ended.catch(() => undefined);
    });
    if (config.netboxUrl) await ensureReconcile(temporal.client, config);
    await ensurePowerWatch(temporal.client, config, store.powerWatch);
    // Not left to the reconcile: one that died with the last worker blocks the next until its heartbeat is missed.
    const restarted = await restartMissingLifecycles({ stores: store, temporal });
    if (restarted > 0) log.warn({ restarted }, 'lifecycles that were missing are started again');
    log.info({ namespace: target.namespace, site: config.site }, 'worker is up');
    return { ended, close: () => closer.close() };
  } catch (error) {
    await closer.close().catch(() => undefined);
    throw error;
  }
}

function centralActivities({ config, store, temporal, netbox, libraries, temporalUi }: WorkerDeps): CentralActivities {
  const crash = crashPointOf(config);
  const lifecycleUrl = (deviceId: string): string => (temporalUi ? `${temporalUi}/workflows/${encodeURIComponent(lifecycleId(deviceId))}` : '');
  return {
    ...createRunActivities({ stores: store, temporal, netbox, limits: config.limits, crash }),
    ...createLifecycleActivities({ stores: store, temporal, netbox, trySeconds: config.limits.activityTry, linkInstallation: (ours) => linkInstallation(temporal.client, temporal, ours) }),
    ...createNetboxActivities({ netbox, classes: libraries.classes, stores: store, temporal, lifecycleUrl, crash }),
    ...createNetbootActivities({ stores: store, crash }),
    ...createOrderActivities({ stores: store }),
    ...createPlanningActivities({ stores: store, netbox, ...libraries }),
  };
}

function siteActivities({ config, store, temporal, libraries, log }: WorkerDeps): SiteActivities {
  const bmc = createCappedBmcFactory({ factory: openBmcs(config, log), most: config.bmcCalls, waitMs: bmcTimes(config.limits.bmcLock).turnMs });
  const lockSeconds = config.limits.bmcLock;
  return {
    ...createPowerActivities({ bmc, stores: store, lockSeconds, crash: crashPointOf(config) }),
    ...createPowerWatchActivities({ bmc, stores: store, temporal, lockSeconds, log }),
    ...createBmcIdentityActivities({ bmc, stores: store, lockSeconds }),
    ...createImageActivities({ images: libraries.images }),
  };
}

/** The SDK logs through pino, and does not take our signals for its own. */
let isInstalled = false;
function installRuntime(log: Logger): void {
  if (isInstalled) return;
  isInstalled = true;
  const level = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level: of, message, meta }) => log[level[of]]({ temporal: meta }, message)),
    shutdownSignals: [], telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

/** Servers started elsewhere may not have them; adding what is there is no error. */
async function addSearchAttributes({ connection, namespace }: TemporalClient): Promise<void> {
  const have = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.values(SEARCH_ATTRIBUTES).filter((name) => !(name in (have.customAttributes ?? {})));
  if (missing.length === 0) return;
  const KEYWORD = 2;
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])) });
}
