/** What several roles of one process share: store, NetBox, Temporal. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/index.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NetboxRequests } from '../contracts/operator.js';
import { createNetboxClient } from '../netbox/client.js';
import type { Store } from '../store/index.js';
import type { Logger } from '../telemetry/log.js';
import { noNetbox } from './no-netbox.js';
import { openStore } from './open-store.js';
import type { createCloser } from './role.js';
import { connectTemporal, temporalTarget, type TemporalClient, type TemporalTarget } from './temporal.js';
import { findTemporalCli, startTemporalServer, type TemporalServer } from './temporal-server.js';

export function openNetbox(config: Config, log: Logger): NetboxClient & NetboxRequests {
  if (!config.netboxUrl || !config.netboxToken) {
    log.warn('METALFLOW_NETBOX_URL is not set: no device can be read, nothing new is started');
    return noNetbox;
  }
  return createNetboxClient({ url: config.netboxUrl, token: config.netboxToken, log });
}

/** What a role that speaks to Temporal stands on. */
export interface Grounds {
  readonly place: TemporalPlace;
  readonly temporal: TemporalClient;
  readonly store: Store;
  readonly netbox: NetboxClient & NetboxRequests;
  /** Takes the deliverer's wake, so that planes of this process need not wait for its next look. */
  readonly onWake: (deliver: () => void) => void;
}

/** @param options.embed starts the dev server where the settings name none @param options.lazy goes on while Temporal is away */
export async function openGrounds(config: Config, log: Logger, closer: Pick<ReturnType<typeof createCloser>, 'add'>, options: { embed?: boolean; lazy?: boolean } = {}): Promise<Grounds> {
  const place = await openTemporal(config, log, { embed: options.embed ?? false });
  if (place.server) closer.add(() => place.server!.close());
  const temporal = await connectTemporal(place.target, { lazy: options.lazy ?? false });
  closer.add(() => temporal.close());
  const wake = { deliverer: (): void => undefined };
  const store = await openStore(config, { temporal, woken: () => wake.deliverer() });
  closer.add(() => store.close());
  const netbox = openNetbox(config, log);
  closer.add(() => netbox.close());
  return { place, temporal, store, netbox, onWake: (deliver) => void (wake.deliverer = deliver) };
}

export interface TemporalPlace {
  readonly target: TemporalTarget;
  /** Of the UI with its namespace; null when nobody said where it is. */
  readonly ui: string | null;
  readonly server: TemporalServer | null;
}

/** Temporal as the settings have it; with `embed`, the dev server when they name none. @throws temporal_cli_missing, temporal_unavailable */
export async function openTemporal(config: Config, log: Logger, { embed }: { embed: boolean }): Promise<TemporalPlace> {
  if (!embed || !config.temporal.embedded) {
    const address = config.temporal.embedded ? `127.0.0.1:${config.temporalPort}` : null;
    return { target: temporalTarget(config.temporal.env, address), ui: config.temporalUiUrl, server: null };
  }
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const server = await startTemporalServer({
    cli: findTemporalCli(config.temporalCli, config.searchPath), port: config.temporalPort, uiPort: config.temporalUiPort,
    dbFile: join(config.dataDir, 'temporal.db'), logFile: join(config.dataDir, 'temporal.log'), log,
  });
  return { target: temporalTarget({}, server.address), ui: `${server.ui}/namespaces/default`, server };
}
