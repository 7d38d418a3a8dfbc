/** The control page of simulated AMTs: for people a page, for tests and scripts a small API. On loopback, without tokens. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { MetalflowError } from '../../domain/errors.js';
import { POWER_NAMES, type PowerName } from '../../domain/power.js';
import { acceptOnlyJson, createHttpServer, type HttpServer } from '../../telemetry/http.js';
import type { Logger } from '../../telemetry/log.js';
import { controlPage } from './control-page.js';
import { FaultChange, shownFaults } from './faults.js';
import type { AmtEndpoint } from './fleet.js';

const POWERS = Object.values(POWER_NAMES) as [PowerName, ...PowerName[]];
const Params = z.object({ n: z.string().regex(/^\d{1,5}$/, 'is no number of an endpoint').transform(Number) });
const Power = z.strictObject({ power: z.enum(POWERS) });
/** A page asked for by another name than ours comes from elsewhere (DNS rebinding). */
const OUR_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/;

/** An endpoint as the API shows it. `faults` are all switches, in the form that PATCH reads. */
export function endpointView({ number, amt, hook }: AmtEndpoint) {
  const { requests, refusedLogins, maxInFlight, byValue } = amt.counts();
  return {
    endpoint: number, url: amt.url, port: amt.port, machineUuid: amt.machineUuid, power: amt.power(), armed: amt.armed(),
    counts: { requests, refusedLogins, maxInFlight, powerCommands: byValue }, thrown: shownFaults(amt.faults(), 'thrown'), faults: shownFaults(amt.faults(), 'all'), hook: hook(),
  };
}
export type EndpointView = ReturnType<typeof endpointView>;

/** Builds the server; the caller listens, on loopback only, and closes it. */
export function createAmtControl({ endpoints, log }: { endpoints: readonly AmtEndpoint[]; log: Logger }): HttpServer {
  const server = createHttpServer({ log, bodyLimit: 64 * 1024 });
  acceptOnlyJson(server);
  server.addHook('onRequest', async (request) => {
    if (!OUR_HOST.test(request.headers.host ?? '')) throw new MetalflowError('request_malformed', { what: 'Host is none of this page' });
  });

  function at(number: number): AmtEndpoint {
    const found = endpoints[number];
    if (!found) throw new MetalflowError('endpoint_not_found', { endpoint: number, count: endpoints.length });
    return found;
  }

  server.get('/', { schema: { querystring: z.object({ endpoint: Params.shape.n.optional() }) } }, async (request, reply) => {
    const chosen = request.query.endpoint === undefined ? null : at(request.query.endpoint);
    const nonce = randomBytes(16).toString('base64');
    return reply
      .headers({
        'Content-Security-Policy': `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
        'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer', 'Cache-Control': 'no-store',
      })
      .type('text/html; charset=utf-8')
      .send(controlPage({ endpoints: endpoints.map(endpointView), chosen: chosen && endpointView(chosen), commands: chosen?.amt.counts().powerCommands ?? [], nonce }));
  });
  server.get('/api/endpoints', async () => ({ endpoints: endpoints.map(endpointView) }));
  server.get('/api/endpoints/:n', { schema: { params: Params } }, async (request) => endpointView(at(request.params.n)));
  server.patch('/api/endpoints/:n/faults', { schema: { params: Params, body: FaultChange } }, async (request) => {
    const endpoint = at(request.params.n);
    await endpoint.amt.setFaults(request.body);
    return endpointView(endpoint);
  });
  server.post('/api/endpoints/:n/power', { schema: { params: Params, body: Power } }, async (request) => {
    const endpoint = at(request.params.n);
    endpoint.amt.setPower(request.body.power);
    return endpointView(endpoint);
  });
  server.get('/api/endpoints/:n/journal', { schema: { params: Params } }, async (request) => {
    const { powerCommands, calls } = at(request.params.n).amt.counts();
    return { powerCommands, calls };
  });
  return server;
}
