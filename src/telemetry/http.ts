/** One fastify for every HTTP plane: zod in and out, errors from the error table, nothing a body can do stops the process. */
import Fastify, { type FastifyBaseLogger, type FastifyError, type FastifyInstance, type RawServerDefault, type FastifyHttpOptions } from 'fastify';
import { hasZodFastifySchemaValidationErrors, serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorText, ERRORS, isMetalflowError, MetalflowError, type ErrorCode } from '../domain/errors.js';
import type { Logger } from './log.js';

export type HttpServer = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>;

/** fastify's own refusals, in our table. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'body_type_unsupported',
  FST_ERR_CTP_INVALID_JSON_BODY: 'body_invalid',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body_invalid',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'body_invalid',
};

export interface HttpServerOptions {
  readonly log: Logger;
  /** Bytes; default 1 MiB. */
  readonly bodyLimit?: number;
  /** Addresses or networks of proxies whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  readonly https?: { key: Buffer; cert: Buffer };
}

/** `{code, message, hint, details?}` of any error that reaches the edge. */
export function errorBody(error: unknown, bodyLimit: number): { status: number; body: { code: ErrorCode; message: string; hint: string; details?: Record<string, unknown> } } {
  const of = (code: ErrorCode, details: Record<string, string | number | boolean> = {}): ReturnType<typeof errorBody> => ({
    status: ERRORS[code].http,
    body: { code, message: errorText(code, details), hint: ERRORS[code].hint, ...(Object.keys(details).length > 0 && { details }) },
  });
  if (isMetalflowError(error)) return of(error.code, error.details);
  if (hasZodFastifySchemaValidationErrors(error)) {
    return of('body_invalid', { what: error.validation.slice(0, 5).map((issue) => `${issue.instancePath || '/'} ${issue.message}`).join('; ') });
  }
  const thrown = error as Partial<FastifyError>;
  const known = thrown.code ? FASTIFY_CODES[thrown.code] : undefined;
  if (known) return of(known, known === 'body_too_large' ? { limit: bodyLimit } : { what: String(thrown.message).slice(0, 200) });
  if (thrown.statusCode === 429) return of('rate_limited');
  if (thrown.statusCode && thrown.statusCode >= 400 && thrown.statusCode < 500) return of('body_invalid', { what: String(thrown.message).slice(0, 200) });
  return of('internal');
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const bodyLimit = options.bodyLimit ?? 1024 * 1024;
  const base = {
    loggerInstance: options.log as FastifyBaseLogger,
    disableRequestLogging: true,
    bodyLimit,
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    routerOptions: { maxParamLength: 500 },
    // A client that dribbles its request must not hold a socket for ever.
    requestTimeout: 30_000,
    connectionTimeout: 120_000,
    forceCloseConnections: true,
    ...(options.https && { https: options.https }),
  };
  const server = Fastify(base as FastifyHttpOptions<RawServerDefault, FastifyBaseLogger>).withTypeProvider<ZodTypeProvider>() as unknown as HttpServer;
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(serializerCompiler);
  server.setErrorHandler((error, request, reply) => {
    const { status, body } = errorBody(error, bodyLimit);
    if (status >= 500) request.log.error({ err: error, req: request }, 'request failed');
    else request.log.debug({ code: body.code, req: request }, 'request refused');
    return reply.status(status).send(body);
  });
  server.setNotFoundHandler((request) => {
    throw new MetalflowError('route_not_found', { route: `${request.method} ${request.url.split('?')[0]!.slice(0, 200)}` });
  });
  return server;
}
