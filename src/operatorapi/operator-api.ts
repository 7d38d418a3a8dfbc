/** The operator plane: what people, NetBox and Prometheus talk to. One route family a file. */
import { MetalflowError } from '../domain/errors.js';
import { acceptOnlyJson, createHttpServer, type HttpServer } from '../telemetry/http.js';
import { createAudit } from './audit.js';
import type { OperatorApiDeps } from './deps.js';
import { addHealthRoutes } from './health-routes.js';
import { createLinks } from './links.js';
import { addLogRoutes } from './log-routes.js';
import { addNodeRoutes } from './node-routes.js';
import { addOpenApi } from './openapi.js';
import { addRequestRoute } from './request-route.js';
import { addRoles } from './roles.js';
import { addVerbRoutes } from './verb-routes.js';
import { addWebhookRoute } from './webhook-route.js';

export type { OperatorApiDeps } from './deps.js';

/**
 * Builds the server; the caller listens and closes it. It binds loopback unless a setting says otherwise: whoever holds an
 * operator's token can wipe machines.
 * @throws setting_invalid for an empty webhook secret, under which anybody could sign
 */
export function createOperatorApi(deps: OperatorApiDeps): HttpServer {
  const { nodes, workflows, planner, hooks, netboxRequests, webhookSecret, log, now = () => new Date() } = deps;
  if (webhookSecret === '') throw new MetalflowError('setting_invalid', { name: 'METALFLOW_NETBOX_WEBHOOK_SECRET', why: 'it is empty; anybody could sign' });
  const server = createHttpServer({ log, ...(deps.trustedProxies && { trustedProxies: deps.trustedProxies }) });
  const audit = createAudit({ nodes, log, now });
  acceptOnlyJson(server);
  addRoles(server, { tokens: deps.tokens, audit });
  addOpenApi(server);
  addHealthRoutes(server, { ready: deps.ready, metrics: deps.metrics });
  if (webhookSecret !== null) addWebhookRoute(server, { hooks, workflows, secret: webhookSecret, log, ...(deps.crash && { crash: deps.crash }) });
  addNodeRoutes(server, { nodes, workflows, planner, links: createLinks(deps.temporalUi) });
  addLogRoutes(server, { nodes, logs: deps.logs });
  addVerbRoutes(server, { nodes, workflows, audit });
  addRequestRoute(server, { nodes, workflows, netboxRequests, audit, log });
  return server;
}
