/** Bearer secrets: session tokens of agents and install codes. The one place of this plane that reads them. */
import type { FastifyRequest } from 'fastify';
import { MetalflowError } from '../domain/errors.js';
import type { AgentSession, OrderDesk } from '../contracts/agent-desk.js';
import { senderOf } from './sender.js';
import type { SenderLimit } from './sender-limit.js';

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i;

/** The token of `Authorization: Bearer` (RFC 6750 §2.1); null when there is none, or none that could be ours. */
export const bearerOf = (request: FastifyRequest): string | null => BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null;

/** Whom failures are counted for. A sender whom a proxy hides behind rubbish shares one count. */
export const limitKey = (request: FastifyRequest): string => senderOf(request) ?? 'unreadable';

export interface SessionAuth {
  /** onRequest hook: refuses before the body is read. @throws token_missing, token_unknown, rate_limited */
  authenticate(request: FastifyRequest): Promise<void>;
  /** The session of a request that `authenticate` let through. */
  sessionOf(request: FastifyRequest): AgentSession;
  /** Is the token of this request still good? A long poll asks again before it hands out an order. */
  recheck(request: FastifyRequest): Promise<AgentSession>;
}

export function createSessionAuth(deps: { orders: OrderDesk; failures: SenderLimit }): SessionAuth {
  const sessions = new WeakMap<FastifyRequest, AgentSession>();

  const readSession = async (request: FastifyRequest): Promise<AgentSession> => {
    const token = bearerOf(request);
    if (token === null) throw new MetalflowError('token_missing');
    const session = await deps.orders.session(token);
    if (session) return session;
    deps.failures.count(limitKey(request));
    throw new MetalflowError('token_unknown');
  };
  return {
    authenticate: async (request) => {
      deps.failures.check(limitKey(request));
      sessions.set(request, await readSession(request));
    },
    sessionOf: (request) => {
      const session = sessions.get(request);
      if (!session) throw new MetalflowError('token_missing');
      return session;
    },
    recheck: readSession,
  };
}
