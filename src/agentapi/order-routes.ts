/** /v1/orders: how an agent gets its orders, takes them, and says what became of them. The ledger decides; this only speaks. */
import { z } from 'zod';
import { MetalflowError } from '../domain/errors.js';
import { ConsumeResponse, NextOrderQuery, OrderReportRequest, OrderReportResponse, OrderSeedResponse, ProgressRequest, ProgressResponse } from '../contracts/agent-api.js';
import type { OrderDesk, SeedDesk, SeedRenderer } from '../contracts/agent-desk.js';
import { OpaqueId } from '../contracts/primitives.js';
import type { HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import type { SessionAuth } from './auth.js';
import { waitForOrder, type WaitingPolls } from './waiting-polls.js';

export interface OrderRoutesDeps {
  readonly orders: OrderDesk;
  readonly seeds: SeedDesk;
  readonly renderer: SeedRenderer;
  readonly auth: SessionAuth;
  readonly polls: WaitingPolls;
  /** As the node sees this plane. */
  readonly baseUrl: string;
  readonly log: Logger;
}

const params = z.object({ id: OpaqueId });

export function addOrderRoutes(server: HttpServer, deps: OrderRoutesDeps): void {
  const { orders, seeds, renderer, auth, polls, log } = deps;
  const onRequest = auth.authenticate;
  const facts = (session: { deviceId: string; run: number | null }, order: string): object => ({ device: session.deviceId, run: session.run, order });

  server.get('/v1/orders/next', { onRequest, exposeHeadRoute: false, schema: { querystring: NextOrderQuery } }, async (request, reply) => {
    const session = auth.sessionOf(request);
    const order = await waitForOrder({
      orders,
      session,
      ms: request.query.wait * 1000,
      signal: polls.enter(session.deviceId, reply.raw),
      recheck: () => auth.recheck(request),
    });
    return order ? reply.status(200).send(order) : reply.status(204).send();
  });

  server.post('/v1/orders/:id/consume', { onRequest, schema: { params, response: { 200: ConsumeResponse } } }, async (request) => {
    const session = auth.sessionOf(request);
    const consumed = await orders.consume(session, request.params.id);
    log.info(facts(session, consumed.orderId), 'order taken');
    return consumed;
  });

  server.post('/v1/orders/:id/progress', { onRequest, schema: { params, body: ProgressRequest, response: { 200: ProgressResponse } } }, async (request) => ({
    go: await orders.progress(auth.sessionOf(request), request.params.id, request.body),
  }));

  server.post('/v1/orders/:id/report', { onRequest, schema: { params, body: OrderReportRequest, response: { 200: OrderReportResponse } } }, async (request) => {
    const session = auth.sessionOf(request);
    const report = await orders.report(session, request.params.id, request.body);
    // A repeated or late report is answered OK all the same: an agent that cannot get rid of its report is stranded (G1).
    log.info({ ...facts(session, request.params.id), result: request.body.result, report }, 'order reported');
    return { report };
  });

  server.get('/v1/orders/:id/seed', { onRequest, exposeHeadRoute: false, schema: { params, response: { 200: OrderSeedResponse } } }, async (request) => {
    const session = auth.sessionOf(request);
    // Only to the hand that took the order: a seed is not served for one that is merely offered, or over.
    const order = await orders.held(session, request.params.id);
    if (order?.action.name !== 'write-seed') throw new MetalflowError('order_not_found', { order: request.params.id });
    const subject = await seeds.subject(session.deviceId, order.run);
    return { files: await renderer.files(subject, order.action.place, deps.baseUrl) };
  });
}
