/** `/2009-04-04/…`, `/latest/…` and `PUT /latest/api/token`, as EC2 has them; every path with and without a slash at its end. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import type { HttpServer } from '../../telemetry/http.js';
import { limitKey } from '../auth.js';
import { normalizeAddress, senderOf } from '../sender.js';
import type { SenderLimit } from '../sender-limit.js';
import type { Asker, Askers } from './asker.js';
import type { Documents } from './documents.js';
import { dynamicTree, findNode, metaDataTree, textOf, type Ec2Directory } from './ec2-tree.js';
import { readTtl, type ImdsTokens } from './imds-token.js';

export const VERSIONS = ['2009-04-04', 'latest'] as const;
const TTL_HEADER = 'x-aws-ec2-metadata-token-ttl-seconds';

export interface Ec2RoutesDeps {
  readonly askers: Askers;
  readonly documents: Documents;
  readonly tokens: ImdsTokens;
  /** Metadata tokens of one sender. */
  readonly issued: SenderLimit;
}

const querystring = z.object({ code: z.string().min(1).max(512).optional() });

/** Forwarded by somebody whom the site does not trust; what a trusted proxy forwards, the server reads as the sender. */
const isForwarded = (request: FastifyRequest): boolean =>
  request.headers['x-forwarded-for'] !== undefined && normalizeAddress(request.ip) === normalizeAddress(request.socket.remoteAddress ?? '');

function below(root: Ec2Directory, path: readonly string[]): string | null {
  const node = findNode(root, path);
  return node === null ? null : textOf(node);
}

export function addEc2Routes(server: HttpServer, { askers, documents, tokens, issued }: Ec2RoutesDeps): void {
  const routes = server.withTypeProvider<ZodTypeProvider>();

  /** null where nothing is there. */
  async function answer(asker: Asker, path: readonly string[]): Promise<string | null> {
    const [first, ...rest] = path;
    switch (first) {
      case undefined: return ['dynamic/', ...(await documents.names(asker)).map((name) => (name === 'meta-data' ? 'meta-data/' : name))].join('\n');
      case 'meta-data': return below(metaDataTree(asker.subject), rest);
      case 'dynamic': return below(dynamicTree(asker.subject), rest);
      case 'user-data':
      case 'vendor-data':
      case 'network-config': return rest.length > 0 ? null : documents.read(asker, first);
      default: return null;
    }
  }

  for (const version of VERSIONS) {
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      const asker = await askers.whoAsks(request, undefined, (request.query as z.infer<typeof querystring>).code);
      const path = ((request.params as { '*'?: string })['*'] ?? '').split('/').filter((name) => name !== '');
      const text = await answer(asker, path);
      if (text === null) throw new MetalflowError('route_not_found', { route: `${version}/${path.join('/').slice(0, 200)}` });
      void reply.type('text/plain; charset=utf-8');
      return text;
    };
    for (const url of [`/${version}`, `/${version}/*`]) routes.get(url, { exposeHeadRoute: false, schema: { querystring } }, handler);
  }

  routes.put('/latest/api/token', async (request, reply) => {
    const ttl = readTtl(request.headers[TTL_HEADER]);
    if (isForwarded(request)) throw new MetalflowError('metadata_token_forwarded');
    issued.check(limitKey(request));
    issued.count(limitKey(request));
    const { deviceId } = await askers.byAddress(request);
    void reply.header(TTL_HEADER, ttl).type('text/plain; charset=utf-8');
    return tokens.issue({ deviceId, sender: senderOf(request)! }, ttl);
  });
}
