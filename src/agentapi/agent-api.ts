/** The agent plane's HTTP server: attestation, orders, seeds. One route family a file. */
import type { AttestationDesk, OrderDesk, SeedDesk, SeedRenderer, VerifyReport } from '../contracts/agent-desk.js';
import { acceptOnlyJson, createHttpServer, type HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import { addAttestRoutes } from './attest-routes.js';
import { createSessionAuth } from './auth.js';
import { addHealthRoutes } from './health-routes.js';
import { addOrderRoutes } from './order-routes.js';
import { createAskers, type AskerDeps } from './metadata/asker.js';
import { createDocuments } from './metadata/documents.js';
import { addNoCloudRoutes } from './metadata/nocloud-routes.js';
import { createSenderLimit } from './sender-limit.js';
import { addSystemRoutes } from './system-routes.js';
import { createWaitingPolls } from './waiting-polls.js';

/** Bytes. The attestation report has a cap of its own. */
const BODY_LIMIT = 64 * 1024;

/** What is known of nodes, and whether their address alone may read it. */
export type NoCloudDeps = Pick<AskerDeps, 'directory' | 'tokenPolicy'>;

export interface AgentApiDeps {
  readonly attestation: AttestationDesk;
  readonly orders: OrderDesk;
  readonly seeds: SeedDesk;
  readonly renderer: SeedRenderer;
  readonly verify: VerifyReport;
  /** With it, NoCloud's documents are served here too: the way to fetch a secret one over TLS. */
  readonly metadata?: NoCloudDeps;
  /** This plane's URL as the node reaches it; it goes into seeds. */
  readonly baseUrl: string;
  /** Admits AKs without TPM proof everywhere. Never on a site with real machines. */
  readonly simulation: boolean;
  readonly log: Logger;
  readonly now?: () => Date;
  /** Addresses or networks whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  /** PEM. Without it main binds this plane to loopback only. */
  readonly https?: { readonly key: Buffer; readonly cert: Buffer };
  /** Uses per minute of one sender: attestation requests (default 60); wrong tokens and codes together (default 20); NoCloud's documents (default 600). */
  readonly limits?: { readonly attestations?: number; readonly failures?: number; readonly documents?: number };
}

/** Builds the server; the caller listens and closes it. Nothing it answers may be cached. */
export function createAgentApi(deps: AgentApiDeps): HttpServer {
  const { attestation, orders, seeds, renderer, verify, metadata, baseUrl, simulation, log, now = () => new Date(), trustedProxies, https, limits = {} } = deps;
  const server = createHttpServer({ log, bodyLimit: BODY_LIMIT, ...(trustedProxies && { trustedProxies }), ...(https && { https }) });
  server.addHook('onRequest', async (_request, reply) => {
    void reply.header('cache-control', 'no-store');
  });
  acceptOnlyJson(server);

  const failures = createSenderLimit({ perMinute: limits.failures ?? 20, now });
  const attempts = createSenderLimit({ perMinute: limits.attestations ?? 60, now });
  addHealthRoutes(server, { attestation });
  addAttestRoutes(server, { attestation, verify, attempts, simulation, log, now });
  addOrderRoutes(server, { orders, seeds, renderer, auth: createSessionAuth({ orders, failures }), polls: createWaitingPolls(), baseUrl, log });
  addSystemRoutes(server, { seeds, renderer, failures, log });
  if (metadata) {
    const askers = createAskers({ ...metadata, orders, seeds, tokens: null, failures, log });
    addNoCloudRoutes(server, { askers, documents: createDocuments({ renderer, baseUrl }), requests: createSenderLimit({ perMinute: limits.documents ?? 600, now }) });
  }
  return server;
}
