/** Who asks, and may they? The one place of this plane that reads tokens and judges roles. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { roleAllows, type OperatorTokens, type Person, type Role } from '../contracts/operator.js';
import { MetalflowError } from '../domain/errors.js';
import type { HttpServer } from '../telemetry/http.js';
import { ask, LIMITS_MS } from './ask.js';
import type { Audit } from './audit.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The role a route needs. `open` is for health and for what proves itself otherwise; a route that names none needs an approver. */
    role?: Role | 'open';
    /** One line for the OpenAPI document. */
    summary?: string;
  }
  interface FastifyRequest {
    person: Person | null;
  }
}

/** RFC 6750 §2.1. */
const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i;

export function addRoles(server: HttpServer, deps: { tokens: () => Promise<OperatorTokens>; audit: Audit }): void {
  server.decorateRequest('person', null);
  // Before the body is read: a stranger's body is never parsed.
  server.addHook('onRequest', async (request, reply) => {
    const needed = request.routeOptions.config.role ?? 'approver';
    if (request.is404 || needed === 'open') return;
    void reply.header('www-authenticate', 'Bearer').header('cache-control', 'no-store');
    request.person = personOf(request, await ask('internal', LIMITS_MS.read, deps.tokens));
    try {
      requireRole(request.person, needed);
    } catch (error) {
      if (request.method === 'POST') await deps.audit.record(request.person, `${request.method} ${request.url.split('?')[0]!.slice(0, 200)}`, null, 'refused: token_role');
      throw error;
    }
    reply.removeHeader('www-authenticate');
  });
}

/** @throws token_role */
export function requireRole(person: Person, needed: Role): void {
  if (!roleAllows(person.role, needed)) throw new MetalflowError('token_role', { name: person.name, role: person.role, needed });
}

/** The person of a request that the hook let through. */
export function personAsking(request: FastifyRequest): Person {
  if (request.person === null) throw new MetalflowError('token_missing');
  return request.person;
}

/** @throws token_missing, token_unknown */
function personOf(request: FastifyRequest, { tokens }: OperatorTokens): Person {
  const header = request.headers.authorization;
  if (header === undefined) throw new MetalflowError('token_missing');
  const given = BEARER.exec(header)?.[1];
  if (given === undefined) throw new MetalflowError('token_unknown');
  const hash = createHash('sha256').update(given).digest();
  const known = tokens.find(({ sha256 }) => timingSafeEqual(hash, Buffer.from(sha256, 'hex')));
  if (!known) throw new MetalflowError('token_unknown');
  return { name: known.name, role: known.role };
}
