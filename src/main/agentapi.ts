/** The agentapi role: attestation, orders, codes, seeds, and the node's own metadata. */
import { readFile } from 'node:fs/promises';
import { createAgentApi } from '../agentapi/agent-api.js';
import { createMetadataApi } from '../agentapi/metadata/metadata-api.js';
import { verifyReport } from '../attestation/report.js';
import type { Config } from '../config/index.js';
import { createSeedRenderer } from '../templates/seeds/index.js';
import type { Store } from '../store/index.js';
import type { Logger } from '../telemetry/log.js';
import { createCloser, listen, urlOf, type RunningRole } from './role.js';
import { freePort } from './temporal-server.js';

export interface AgentRole extends RunningRole {
  readonly url: string;
  readonly metadataUrl: string;
}

/** As nodes reach the agent plane. */
export const agentUrlOf = (config: Config, port: number): string => config.agentUrl ?? urlOf(config.agentTlsCert ? 'https' : 'http', config.bindAddress, port);

/** As nodes reach the metadata service: where they reach the agent plane, since one role serves both. */
const metadataUrlOf = (config: Config, agentUrl: string, port: number): string => config.metadataUrl ?? urlOf('http', new URL(agentUrl).hostname.replace(/^\[|\]$/g, ''), port);

/** @throws port_in_use */
export async function startAgentApi({ config, store, log }: { config: Config; store: Store; log: Logger }): Promise<AgentRole> {
  const closer = createCloser();
  const https = config.agentTlsCert && config.agentTlsKey ? { cert: await readFile(config.agentTlsCert), key: await readFile(config.agentTlsKey) } : null;
  // Seeds carry the URLs of both servers, so their ports are known before they listen.
  const port = config.agentHttpPort || (await freePort());
  const metadataPort = config.metadataPort || (await freePort());
  const url = agentUrlOf(config, port);
  const metadataUrl = metadataUrlOf(config, url, metadataPort);
  const renderer = createSeedRenderer({ ...(config.seedsDir && { folder: config.seedsDir }), agentUrl: url, metadataUrl, secretsFolder: config.secretsDir });
  const api = createAgentApi({
    attestation: store.attestation, orders: store.orderDesk, seeds: store.seeds, verify: verifyReport, renderer, metadata: { directory: store.metadata, tokenPolicy: config.metadataTokens },
    baseUrl: url, simulation: config.simulation, log, trustedProxies: config.trustedProxies, ...(https && { https }),
  });
  try {
    await listen(api, 'the agent plane', config.bindAddress, port);
    closer.add(() => api.close());
    const metadata = createMetadataApi({
      directory: store.metadata, orders: store.orderDesk, seeds: store.seeds, renderer, agentUrl: url, tokenPolicy: config.metadataTokens, log, trustedProxies: config.trustedProxies,
    });
    await listen(metadata, 'metadata', config.bindAddress, metadataPort);
    closer.add(() => metadata.close());
    log.info({ url, metadataPort }, 'agentapi is up');
    return { url, metadataUrl: urlOf('http', config.bindAddress, metadataPort), close: () => closer.close() };
  } catch (error) {
    await closer.close().catch(() => undefined);
    throw error;
  }
}
