/**
 * `/nocloud/<machine uuid>/…`, for cloud-init's NoCloud with `seedfrom`. The UUID is no secret, it only says whom the asker takes itself
 * for: it stands in SMBIOS, so that one kernel command line serves every node (`s=http://…/nocloud/__dmi.system-uuid__/`).
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import { MachineUuid } from '../../contracts/primitives.js';
import type { HttpServer } from '../../telemetry/http.js';
import { limitKey } from '../auth.js';
import type { SenderLimit } from '../sender-limit.js';
import type { Asker, Askers } from './asker.js';
import { DOCUMENTS, type DocumentName, type Documents } from './documents.js';

const querystring = z.object({ code: z.string().min(1).max(512).optional() });

const isDocument = (name: string): name is DocumentName => (DOCUMENTS as readonly string[]).includes(name);

/** @param deps.requests of one sender, where the server has no limit for all of its routes */
export function addNoCloudRoutes(server: HttpServer, { askers, documents, requests }: { askers: Askers; documents: Documents; requests?: SenderLimit }): void {
  const routes = server.withTypeProvider<ZodTypeProvider>();
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    requests?.check(limitKey(request));
    requests?.count(limitKey(request));
  };
  const options = { onRequest, exposeHeadRoute: false, schema: { querystring } };

  /** @throws node_not_found, also for what is no UUID: there is no such node */
  function asks(request: FastifyRequest): Promise<Asker> {
    const { id } = request.params as { id: string };
    const uuid = MachineUuid.safeParse(id);
    if (!uuid.success) throw new MetalflowError('node_not_found', { node: id.slice(0, 60) });
    return askers.whoAsks(request, { uuid: uuid.data }, (request.query as z.infer<typeof querystring>).code);
  }

  const list = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
    const names = await documents.names(await asks(request));
    void reply.type('text/plain; charset=utf-8');
    return names.join('\n');
  };
  for (const url of ['/nocloud/:id', '/nocloud/:id/']) routes.get(url, options, list);

  for (const slash of ['', '/']) {
    routes.get(`/nocloud/:id/:document${slash}`, options, async (request, reply) => {
      const { document } = request.params as { document: string };
      const asker = await asks(request);
      if (!isDocument(document)) throw new MetalflowError('route_not_found', { route: `NoCloud document ${document.slice(0, 100)}` });
      void reply.type('text/plain; charset=utf-8');
      // One that the node has not is empty: for a 404 cloud-init asks eleven times, a second apart, at each boot.
      return (await documents.read(asker, document)) ?? '';
    });
  }
}
