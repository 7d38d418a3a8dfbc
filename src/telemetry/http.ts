/** One fastify for every HTTP plane: zod in and out, errors from the error table, nothing a body can do stops the process. */
import Fastify, {
  type ConnectionError, type FastifyBaseLogger, type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, type RawServerDefault, type FastifyHttpOptions,
} from 'fastify';
import { hasZodFastifySchemaValidationErrors, serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { maxHeaderSize, STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { errorText, ERRORS, isMetalflowError, MetalflowError, type ErrorCode, type ErrorDetails } from '../domain/errors.js';
import { readJson } from '../domain/json.js';
import type { Logger } from './log.js';

export type HttpServer = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>;

/** fastify's own refusals, in our table. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'body_type_unsupported',
  FST_ERR_CTP_INVALID_JSON_BODY: 'body_invalid',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body_invalid',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'body_invalid',
  FST_ERR_BAD_URL: 'request_malformed',
  FST_ERR_MAX_PARAM_LENGTH: 'request_malformed',
};

/** A client that dribbles its request must not hold a socket for ever. */
const REQUEST_MS = 30_000;

export interface HttpServerOptions {
  readonly log: Logger;
  /** Bytes; default 1 MiB. */
  readonly bodyLimit?: number;
  /** Addresses or networks of proxies whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[];
  readonly https?: { key: Buffer; cert: Buffer };
}

export interface ErrorAnswer {
  readonly status: number;
  readonly body: { readonly code: ErrorCode; readonly message: string; readonly hint: string; readonly details?: ErrorDetails };
}

function answerOf(code: ErrorCode, details: ErrorDetails = {}): ErrorAnswer {
  return { status: ERRORS[code].http, body: { code, message: errorText(code, details), hint: ERRORS[code].hint, ...(Object.keys(details).length > 0 && { details }) } };
}

/**
 * `{code, message, hint, details?}` of any error that reaches the edge.
 * @param bodyLimit bytes that the route takes, named by `body_too_large`
 */
export function errorBody(error: unknown, bodyLimit: number): ErrorAnswer {
  if (isMetalflowError(error)) return answerOf(error.code, error.details);
  if (hasZodFastifySchemaValidationErrors(error)) {
    return answerOf('body_invalid', { what: error.validation.slice(0, 5).map((issue) => `${issue.instancePath || '/'} ${issue.message}`).join('; ') });
  }
  const thrown = error as Partial<FastifyError>;
  const known = thrown.code ? FASTIFY_CODES[thrown.code] : undefined;
  if (known === 'body_too_large') return answerOf(known, { limit: bodyLimit });
  if (known === 'request_malformed') return answerOf(known, { what: thrown.code === 'FST_ERR_BAD_URL' ? 'the URL is badly encoded' : 'a part of the URL is too long' });
  if (known) return answerOf(known, { what: String(thrown.message).slice(0, 200) });
  if (thrown.statusCode === 429) return answerOf('rate_limited');
  if (thrown.statusCode && thrown.statusCode >= 400 && thrown.statusCode < 500) return answerOf('body_invalid', { what: String(thrown.message).slice(0, 200) });
  return answerOf('internal');
}

/**
 * Answers what never became a request: broken HTTP, headers without end, a request that stopped half-way. The error holds the raw
 * packet, and with it whatever secret the client sent: it is neither logged nor quoted.
 */
function answerBrokenClient(error: ConnectionError, socket: Socket, response: ServerResponse | undefined, log: Logger): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const { status, body } =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? answerOf('request_too_slow', { seconds: REQUEST_MS / 1000 })
    : error.code === 'HPE_HEADER_OVERFLOW' ? answerOf('headers_too_large', { limit: maxHeaderSize })
    : answerOf('request_malformed', { what: `not HTTP (${error.code ?? 'unknown'})` });
  log.debug({ code: body.code, parser: error.code, from: socket.remoteAddress }, 'request refused');
  // An answer that is on its way already must not be cut by a second one.
  if (!socket.writable || (response?.headersSent && !response.writableFinished)) {
    socket.destroy();
    return;
  }
  const text = JSON.stringify(body);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, bodyLimit: number): void {
  const { status, body } = errorBody(error, bodyLimit);
  if (status >= 500) request.log.error({ err: error, req: request }, 'request failed');
  else request.log.debug({ code: body.code, req: request }, 'request refused');
  void reply.status(status).send(body);
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const bodyLimit = options.bodyLimit ?? 1024 * 1024;
  const responses = new WeakMap<Socket, ServerResponse>();
  const base = {
    loggerInstance: options.log as FastifyBaseLogger,
    logController: new Fastify.LogController({ disableRequestLogging: true }),
    // The id of a request in our logs is ours: a client that could choose it could forge the trail of another.
    requestIdHeader: false,
    bodyLimit,
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    routerOptions: { maxParamLength: 500 },
    requestTimeout: REQUEST_MS,
    connectionTimeout: 120_000,
    forceCloseConnections: true,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => refuse(error, request, reply, bodyLimit),
    clientErrorHandler: (error: ConnectionError, socket: Socket) => answerBrokenClient(error, socket, responses.get(socket), options.log),
    ...(options.https && { https: options.https }),
  };
  const server = Fastify(base as FastifyHttpOptions<RawServerDefault, FastifyBaseLogger>).withTypeProvider<ZodTypeProvider>() as unknown as HttpServer;
  server.server.on('request', (request, response) => void responses.set(request.socket, response));
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(serializerCompiler);
  server.setErrorHandler((error, request, reply) => refuse(error, request, reply, request.routeOptions.bodyLimit ?? bodyLimit));
  server.setNotFoundHandler((request) => {
    throw new MetalflowError('route_not_found', { route: `${request.method} ${request.url.split('?')[0]!.slice(0, 200)}` });
  });
  return server;
}

/**
 * The only body a plane then reads: JSON of bounded nesting without prototype keys, judged before zod sees it. Other content types are refused
 * with 415. An empty body is no body, so that a POST which needs none may still name the type.
 */
export function acceptOnlyJson(server: HttpServer): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') return done(null, undefined);
    const reading = readJson(body);
    if (reading.kind === 'read') done(null, reading.value);
    else done(new MetalflowError('body_invalid', { what: reading.why }));
  });
}
