/** The metrics of a role that runs alone, on a port of their own: nodes have no business with them, so not on the plane's. */
import type { Config } from '../config/index.js';
import { createHttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import type { Metrics } from './metrics.js';
import { listen, urlOf, type RunningRole } from './role.js';

/** @returns null where the settings want none. @throws port_in_use, port_forbidden, address_not_here */
export async function startMetricsServer(config: Config, { registry }: Metrics, log: Logger): Promise<RunningRole | null> {
  if (config.metricsPort === null) return null;
  const server = createHttpServer({ log });
  server.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()));
  const port = await listen(server, 'metrics', config.operatorBindAddress, config.metricsPort);
  log.info({ metrics: `${urlOf('http', config.operatorBindAddress, port)}/metrics` }, 'metrics are up');
  return { close: () => server.close() };
}
