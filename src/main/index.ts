/** The roles as the command line starts them. */
import type { Roles } from '../cli/index.js';
import type { Config } from '../config/index.js';
import { createLogger, type Logger } from '../telemetry/log.js';
import { agentUrlOf, startAgentApi } from './agentapi.js';
import { bmcByHand } from './bmc.js';
import { startBoot } from './boot.js';
import { dhcpConfig } from './dhcp.js';
import { doctor } from './doctor.js';
import { openGrounds } from './house.js';
import { openLibraries } from './libraries.js';
import { startMetricsServer } from './metrics-server.js';
import { createMetrics } from './metrics.js';
import { openStoreLate } from './late-store.js';
import { openStore } from './open-store.js';
import { startOperatorApi } from './operatorapi.js';
import { createCloser, untilSignal } from './role.js';
import { simulateAmt, simulateNode } from './simulate.js';
import { startHouse } from './up.js';
import { startWorker } from './worker.js';

export function createRoles(): Roles {
  return {
    async up(config) {
      const log = loggerOf(config);
      const house = await startHouse(config, { log });
      const { boot, agent, operator, temporalUi, temporalAddress, temporalPid } = house;
      // One line for programs that started us: where everything is.
      const up = {
        pid: process.pid, operator: operator.url, agent: agent.url, metadata: agent.metadataUrl,
        bootHttp: boot.httpUrl, tftpPort: boot.tftpPort, syslogPort: boot.syslogPort, temporalUi, temporalAddress, temporalPid,
      };
      process.stdout.write(`${JSON.stringify({ up })}\n`);
      await Promise.race([untilSignal(), house.ended]);
      await house.close();
    },
    worker: (config) =>
      running(config, async (log, closer) => {
        const { place, temporal, store, netbox, onWake } = await openGrounds(config, log, closer);
        const worker = await startWorker({ config, store, temporal, target: place.target, netbox, libraries: openLibraries(config, null, log), temporalUi: place.ui, log, onWake });
        closer.add(() => worker.close());
        return { ended: worker.ended };
      }),
    boot: (config) =>
      running(config, async (log, closer) => {
        const store = openStoreLate({ open: () => openStore(config), log });
        closer.add(() => store.close());
        const metrics = createMetrics();
        const boot = await startBoot({ config, store, log, metrics, agentUrl: agentUrlOf(config, config.agentHttpPort), placeholders: false });
        closer.add(() => boot.close());
        const told = await startMetricsServer(config, metrics, log);
        closer.add(() => told?.close());
      }),
    agentapi: (config) =>
      running(config, async (log, closer) => {
        const store = await openStore(config);
        closer.add(() => store.close());
        const agent = await startAgentApi({ config, store, log });
        closer.add(() => agent.close());
      }),
    operatorapi: (config) =>
      running(config, async (log, closer) => {
        // Temporal may be away: the plane starts, says so, and NetBox sends its hooks again.
        const { place, temporal, store, netbox } = await openGrounds(config, log, closer, { lazy: true });
        const operator = await startOperatorApi({ config, store, temporal, netbox, libraries: openLibraries(config, null, log), temporalUi: place.ui, metrics: createMetrics(), log });
        closer.add(() => operator.close());
      }),
    async demo(options) {
      const { runDemo } = await import('./demo/demo.js');
      await runDemo(options);
    },
    simulateAmt,
    simulateNode,
    doctor,
    dhcpConfig,
    bmc: bmcByHand,
  };
}

const loggerOf = (config: Config): Logger => createLogger({ level: config.logLevel, role: config.role });

/** Starts a role and keeps it until a signal, or until it ends of itself. */
async function running(config: Config, start: (log: Logger, closer: ReturnType<typeof createCloser>) => Promise<{ ended: Promise<void> } | void>): Promise<void> {
  const closer = createCloser();
  try {
    const stop = untilSignal();
    const started = await start(loggerOf(config), closer);
    await (started ? Promise.race([stop, started.ended]) : stop);
  } finally {
    await closer.close();
  }
}
