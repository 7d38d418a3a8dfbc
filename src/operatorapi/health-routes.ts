/** /healthz: the process answers. /readyz: what it needs answers too. /metrics: Prometheus, with a reader's token. */
import type { ReadyCheck } from '../contracts/operator.js';
import { isMetalflowError } from '../domain/errors.js';
import type { HttpServer } from '../telemetry/http.js';
import { ask, LIMITS_MS } from './ask.js';

export interface HealthDeps {
  readonly ready: () => Promise<readonly ReadyCheck[]>;
  readonly metrics: () => Promise<string>;
}

export function addHealthRoutes(server: HttpServer, deps: HealthDeps): void {
  server.get('/healthz', { config: { role: 'open', summary: 'The process answers' } }, async () => ({ status: 'ok' }));

  server.get('/readyz', { config: { role: 'open', summary: 'What the process needs answers too' } }, async (_request, reply) => {
    const checks = await readChecks(deps.ready);
    const ready = checks.every(({ ok }) => ok);
    // Open to everybody, so it says which part is away and not why.
    return reply.status(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not-ready', checks: checks.map(({ name, ok }) => ({ name, ok })) });
  });

  server.get('/metrics', { config: { role: 'reader', summary: 'Prometheus metrics' } }, async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await ask('internal', LIMITS_MS.read, deps.metrics)));
}

async function readChecks(ready: HealthDeps['ready']): Promise<readonly ReadyCheck[]> {
  try {
    return await ask('internal', LIMITS_MS.ready, ready);
  } catch (error) {
    return [{ name: isMetalflowError(error) ? error.code : 'internal', ok: false }];
  }
}
