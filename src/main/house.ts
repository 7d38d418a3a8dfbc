/** What several roles of one process share: store, NetBox, Temporal. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/index.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NetboxRequests } from '../contracts/operator.js';
import { createNetboxClient } from '../netbox/client.js';
import type { Logger } from '../telemetry/log.js';
import { noNetbox } from './no-netbox.js';
import { temporalTarget, type TemporalTarget } from './temporal.js';
import { findTemporalCli, startTemporalServer, type TemporalServer } from './temporal-server.js';

export function openNetbox(config: Config, log: Logger): NetboxClient & NetboxRequests {
  if (!config.netboxUrl || !config.netboxToken) {
    log.warn('METALFLOW_NETBOX_URL is not set: no device can be read, nothing new is started');
    return noNetbox;
  }
  return createNetboxClient({ url: config.netboxUrl, token: config.netboxToken, log });
}

export interface TemporalPlace {
  readonly target: TemporalTarget;
  /** Of the UI with its namespace; null when nobody said where it is. */
  readonly ui: string | null;
  readonly server: TemporalServer | null;
}

/** Temporal as the settings have it; with `embed`, the dev server when they name none. @throws temporal_cli_missing, temporal_unavailable */
export async function openTemporal(config: Config, log: Logger, { embed }: { embed: boolean }): Promise<TemporalPlace> {
  if (!embed || !config.temporal.embedded) return { target: temporalTarget(config.temporal.env, config.temporal.embedded ? `127.0.0.1:${config.temporalPort}` : null), ui: config.temporalUiUrl, server: null };
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const server = await startTemporalServer({
    cli: findTemporalCli(config.temporalCli, config.searchPath), port: config.temporalPort, uiPort: config.temporalUiPort, dbFile: join(config.dataDir, 'temporal.db'), logFile: join(config.dataDir, 'temporal.log'), log,
  });
  return { target: temporalTarget({}, server.address), ui: `${server.ui}/namespaces/default`, server };
}
