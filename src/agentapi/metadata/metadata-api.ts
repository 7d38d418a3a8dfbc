/**
 * The metadata service a node asks about itself: EC2's layout (version 2009-04-04 and latest, IMDSv2's tokens), Hegel's `/metadata`, and
 * cloud-init's NoCloud. A node gets its own facts or nothing.
 */
import { randomBytes } from 'node:crypto';
import { MetalflowError } from '../../domain/errors.js';
import type { OrderDesk, SeedDesk, SeedRenderer } from '../../contracts/agent-desk.js';
import type { MetadataDirectory, MetadataTokenPolicy } from '../../contracts/metadata.js';
import { createHttpServer, type HttpServer } from '../../telemetry/http.js';
import type { Logger } from '../../telemetry/log.js';
import { limitKey } from '../auth.js';
import { createSenderLimit } from '../sender-limit.js';
import { createAskers } from './asker.js';
import { createDocuments } from './documents.js';
import { addEc2Routes, VERSIONS } from './ec2-routes.js';
import { hegelMetadata } from './hegel.js';
import { createImdsTokens } from './imds-token.js';
import { addNoCloudRoutes } from './nocloud-routes.js';

/** Nothing is posted here. */
const BODY_LIMIT = 1024;
/** Characters; the longest path of ours has some 150. */
const LONGEST_URL = 2048;

export interface MetadataApiDeps {
  readonly directory: MetadataDirectory;
  readonly orders: Pick<OrderDesk, 'session'>;
  readonly seeds: Pick<SeedDesk, 'redeem'>;
  readonly renderer: SeedRenderer;
  /** The agent plane as the node reaches it; it goes into the documents. */
  readonly agentUrl: string;
  readonly log: Logger;
  /** Addresses or networks whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  /** Whether an address alone needs an IMDSv2 token; `optional` by default. */
  readonly tokenPolicy?: MetadataTokenPolicy;
  /** Of the IMDSv2 tokens, 32 bytes or more; drawn anew for each process by default. */
  readonly tokenKey?: Buffer;
  readonly now?: () => Date;
  /** Uses per minute of one sender: requests (default 1200; a crawl of cloud-init takes some 60), tokens (60), wrong credentials (20). */
  readonly limits?: { readonly requests?: number; readonly tokens?: number; readonly failures?: number };
}

/** Builds the server; the caller listens and closes it. */
export function createMetadataApi(deps: MetadataApiDeps): HttpServer {
  const { now = () => new Date(), limits = {}, log } = deps;
  const server = createHttpServer({ log, bodyLimit: BODY_LIMIT, ...(deps.trustedProxies && { trustedProxies: deps.trustedProxies }) });
  // The PUT for a token carries nothing that is read; clients name whatever type they like.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));

  const requests = createSenderLimit({ perMinute: limits.requests ?? 1200, now });
  server.addHook('onRequest', async (request, reply) => {
    void reply.header('cache-control', 'no-store');
    if (request.url.length > LONGEST_URL) throw new MetalflowError('request_malformed', { what: `the URL is longer than ${LONGEST_URL} characters` });
    requests.check(limitKey(request));
    requests.count(limitKey(request));
  });

  const tokens = createImdsTokens({ key: deps.tokenKey ?? randomBytes(32), now });
  const failures = createSenderLimit({ perMinute: limits.failures ?? 20, now });
  const askers = createAskers({ directory: deps.directory, orders: deps.orders, seeds: deps.seeds, tokens, tokenPolicy: deps.tokenPolicy ?? 'optional', failures, log });
  const documents = createDocuments({ renderer: deps.renderer, baseUrl: deps.agentUrl });

  server.get('/', { exposeHeadRoute: false }, async (_request, reply) => {
    void reply.type('text/plain; charset=utf-8');
    return VERSIONS.join('\n');
  });
  for (const url of ['/metadata', '/metadata/']) server.get(url, { exposeHeadRoute: false }, async (request) => hegelMetadata((await askers.whoAsks(request)).subject));
  addEc2Routes(server, { askers, documents, tokens, issued: createSenderLimit({ perMinute: limits.tokens ?? 60, now }) });
  addNoCloudRoutes(server, { askers, documents });

  // Refused before a body is read. HEAD too: it would redeem an install code and serve nothing.
  server.route({
    method: ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    url: '/*',
    onRequest: async (request, reply) => {
      const allowed = request.url.split('?')[0] === '/latest/api/token' ? 'PUT' : 'GET';
      void reply.header('allow', allowed);
      throw new MetalflowError('method_not_allowed', { method: request.method, allowed });
    },
    handler: async () => undefined,
  });
  return server;
}
