/** /v1/seed and /v1/seen: the installed system redeems its install code. */
import type { FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MetalflowError } from '../domain/errors.js';
import type { Redemption, SeedDesk, SeedRenderer } from '../contracts/agent-desk.js';
import { MachineUuid } from '../contracts/primitives.js';
import type { HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import { bearerOf, limitKey } from './auth.js';
import type { SenderLimit } from './sender-limit.js';

export interface SystemRoutesDeps {
  readonly seeds: SeedDesk;
  readonly renderer: SeedRenderer;
  readonly failures: SenderLimit;
  readonly log: Logger;
}

const params = z.object({ uuid: MachineUuid });
/** Talos and cloud-init's phone_home can send no header, so their code comes in the URL; no log of ours shows it. */
const querystring = z.object({ code: z.string().min(1).max(512).optional() });

export function addSystemRoutes(server: HttpServer, deps: SystemRoutesDeps): void {
  const { seeds, renderer, failures, log } = deps;

  /** @throws token_missing, code_unknown, code_spent */
  async function redeem(how: 'redeem' | 'seen', request: FastifyRequest, systemUuid: string, urlCode: string | undefined): Promise<Extract<Redemption, { kind: 'redeemed' }>> {
    const code = bearerOf(request) ?? urlCode;
    if (code === undefined) throw new MetalflowError('token_missing');
    const sender = limitKey(request);
    const redemption = await seeds[how]({ code, systemUuid, sender });
    switch (redemption.kind) {
      case 'redeemed': return redemption;
      case 'spent': throw new MetalflowError('code_spent');
      case 'unknown':
        failures.count(sender);
        log.warn({ uuid: systemUuid, sender }, 'unknown install code');
        throw new MetalflowError('code_unknown');
    }
  }

  const onRequest = async (request: FastifyRequest): Promise<void> => failures.check(limitKey(request));

  void server.register(async (scope) => {
    // phone_home posts a form; what it says is of no use here, since the code says who it is.
    scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));
    const routes = scope.withTypeProvider<ZodTypeProvider>();

    // Without a HEAD twin: it would redeem the code and serve nothing.
    routes.get('/v1/seed/:uuid', { onRequest, exposeHeadRoute: false, schema: { params, querystring } }, async (request, reply) => {
      const { deviceId, run, first } = await redeem('redeem', request, request.params.uuid, request.query.code);
      const { contentType, body } = await renderer.document(await seeds.subject(deviceId, run));
      log.info({ device: deviceId, run, first }, 'seed fetched');
      return reply.type(contentType).send(body);
    });

    routes.post('/v1/seen/:uuid', { onRequest, schema: { params, querystring } }, async (request, reply) => {
      const { deviceId, run, first } = await redeem('seen', request, request.params.uuid, request.query.code);
      log.info({ device: deviceId, run, first }, 'installed system seen');
      return reply.status(204).send();
    });
  });
}
