/**
 * The metadata service a booted node asks about itself (EC2's layout, version 2009-04-04, as cloud-init and HookOS read it).
 * A node is known by its sender's address, and gets its own facts or nothing (field failure M1).
 */
import type { FastifyRequest } from 'fastify';
import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import type { MetadataDirectory, MetadataSubject } from '../../contracts/metadata.js';
import { createHttpServer, type HttpServer } from '../../telemetry/http.js';
import type { Logger } from '../../telemetry/log.js';
import { senderOf } from '../sender.js';

const VERSIONS = ['2009-04-04', 'latest'] as const;
/** Nothing is posted here. */
const BODY_LIMIT = 1024;

/** The keys in the order of the listing; null leaves one out. */
const KEYS: Readonly<Record<string, (subject: MetadataSubject) => string | null>> = {
  hostname: (subject) => subject.nodeName,
  'instance-id': (subject) => subject.instanceId,
  'local-hostname': (subject) => subject.nodeName,
  'local-ipv4': (subject) => subject.addresses.find((address) => isIPv4(address)) ?? null,
};

/**
 * Builds the server; the caller listens and closes it.
 * @param deps.trustedProxies addresses or networks whose X-Forwarded-For is believed; none by default
 */
export function createMetadataApi(deps: { directory: MetadataDirectory; log: Logger; trustedProxies?: readonly string[] }): HttpServer {
  const server = createHttpServer({ log: deps.log, bodyLimit: BODY_LIMIT, ...(deps.trustedProxies && { trustedProxies: deps.trustedProxies }) });
  server.addHook('onRequest', async (_request, reply) => {
    void reply.header('cache-control', 'no-store');
  });

  /** @throws node_not_found */
  async function subjectOf(request: FastifyRequest): Promise<MetadataSubject> {
    const sender = senderOf(request);
    const subject = sender === null ? null : await deps.directory(sender);
    if (!subject) throw new MetalflowError('node_not_found', { node: sender ?? 'at an unreadable address' });
    return subject;
  }

  async function list(request: FastifyRequest): Promise<string> {
    const subject = await subjectOf(request);
    return Object.keys(KEYS).filter((key) => KEYS[key]!(subject) !== null).join('\n');
  }

  server.get('/', async () => VERSIONS.join('\n'));
  for (const version of VERSIONS) {
    server.get(`/${version}/`, async () => 'meta-data/');
    server.get(`/${version}/meta-data`, list);
    server.get(`/${version}/meta-data/`, list);
    server.get(`/${version}/meta-data/:key`, { schema: { params: z.object({ key: z.string() }) } }, async (request) => {
      const subject = await subjectOf(request);
      const { key } = request.params;
      const value = Object.hasOwn(KEYS, key) ? KEYS[key]!(subject) : null;
      if (value === null) throw new MetalflowError('route_not_found', { route: `meta-data key ${key}` });
      return value;
    });
  }
  return server;
}
