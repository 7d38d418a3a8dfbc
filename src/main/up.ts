/** Every role in one process, on embedded defaults. */
import type { Config } from '../config/index.js';
import { createLogger, type Logger } from '../telemetry/log.js';
import { startAgentApi, type AgentRole } from './agentapi.js';
import { startBoot, type BootRole } from './boot.js';
import { openGrounds } from './house.js';
import { openLibraries } from './libraries.js';
import { createMetrics } from './metrics.js';
import { startOperatorApi, type OperatorRole } from './operatorapi.js';
import { createCloser, type RunningRole } from './role.js';
import { startWorker } from './worker.js';

export interface House extends RunningRole {
  readonly boot: BootRole;
  readonly agent: AgentRole;
  readonly operator: OperatorRole;
  readonly temporalUi: string | null;
  readonly temporalAddress: string;
  readonly temporalPid: number | null;
  /** Rejects when the worker dies of itself. */
  readonly ended: Promise<void>;
}

/** @throws MetalflowError of whatever keeps a role from starting; what was started is stopped */
export async function startHouse(config: Config, { placeholders = false, log = createLogger({ level: config.logLevel, role: 'up' }) }: { placeholders?: boolean; log?: Logger } = {}): Promise<House> {
  const closer = createCloser();
  try {
    const { place, temporal, store, netbox, onWake } = await openGrounds(config, log, closer, { embed: true });
    const metrics = createMetrics();

    const agent = await startAgentApi({ config, store, log });
    closer.add(() => agent.close());
    const boot = await startBoot({ config, store, log, metrics, agentUrl: agent.url, placeholders });
    closer.add(() => boot.close());
    const libraries = openLibraries(config, boot.httpUrl, log);
    const worker = await startWorker({ config, store, temporal, target: place.target, netbox, libraries, temporalUi: place.ui, log, onWake });
    closer.add(() => worker.close());
    const operator = await startOperatorApi({ config, store, temporal, netbox, libraries, temporalUi: place.ui, metrics, log });
    closer.add(() => operator.close());
    return {
      boot, agent, operator, temporalUi: place.ui, temporalAddress: String(place.target.connection.address), temporalPid: place.server?.pid ?? null, ended: worker.ended, close: () => closer.close(),
    };
  } catch (error) {
    await closer.close().catch(() => undefined);
    throw error;
  }
}
