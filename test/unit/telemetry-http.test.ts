/** The one HTTP server every plane is built on: what clients can do to it, and what they read back. Real sockets on loopback. */
import { connect, type AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { ERRORS } from '../../src/domain/errors.js';
import { createHttpServer, type HttpServer } from '../../src/telemetry/http.js';
import { createLogger } from '../../src/telemetry/log.js';

const LIMIT = 2000;
let server: HttpServer;
let port: number;
let logged: string;
const warnings: string[] = [];
const onWarning = (warning: Error): void => void warnings.push(String((warning as Error & { code?: string }).code ?? warning.message));

beforeAll(async () => {
  process.on('warning', onWarning);
  const destination = new Writable({ write: (chunk, _encoding, done) => void ((logged += String(chunk)), done()) });
  server = createHttpServer({ log: createLogger({ level: 'trace', role: 'test', destination }), bodyLimit: LIMIT });
  server.get('/hello/:name', async (request) => ({ id: request.id, from: request.ip }));
  server.post('/wide', { schema: { body: z.object({ name: z.string().max(5) }) } }, async () => ({ ok: true }));
  server.post('/narrow', { bodyLimit: 100 }, async () => ({ ok: true }));
  server.get('/broken', async () => {
    throw new Error('the database password is hunter2');
  });
  server.get('/stream', (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-length': '10' });
    reply.raw.write('01234');
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  port = (server.server.address() as AddressInfo).port;
});
beforeEach(() => void (logged = ''));
afterAll(async () => {
  await server.close();
  process.off('warning', onWarning);
});

/** Everything the server says to these bytes until it closes the connection (or `until` is in it). */
function say(bytes: string, until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setTimeout(60_000, () => socket.destroy(new Error(`silent after ${JSON.stringify(heard)}`)));
    socket.on('data', (chunk) => {
      heard += String(chunk);
      if (until && heard.includes(until)) socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error)));
    socket.on('close', () => resolve(heard));
  });
}

const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const fetchBody = async (path: string, init?: RequestInit): Promise<{ status: number; body: unknown }> => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return { status: response.status, body: await response.json() };
};
const json = (body: string): RequestInit => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body });

describe('a request that is broken HTTP is answered in our words', () => {
  test.each([
    ['no HTTP at all', 'EHLO mail.example.org\r\n\r\n', 400, 'request_malformed'],
    ['a header without a colon', 'GET /hello/x HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n', 400, 'request_malformed'],
    ['two lengths', 'POST /wide HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc', 400, 'request_malformed'],
    ['a length beside chunks', 'POST /wide HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc', 400, 'request_malformed'],
    ['a chunk of no size', 'POST /wide HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400, 'request_malformed'],
    ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'request_malformed'],
    ['headers without end', `GET /hello/x HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(40_000)}`, 431, 'headers_too_large'],
  ] as const)('%s', async (_what, bytes, status, code) => {
    const answer = await say(bytes);
    expect(statusOf(answer)).toBe(status);
    expect(bodyOf(answer)).toMatchObject({ code, hint: ERRORS[code].hint, message: expect.any(String) });
    expect((await fetchBody('/hello/still-there')).status).toBe(200);
  });

  test('what the client sent is neither logged nor quoted', async () => {
    const answer = await say('GET /v1/seed?code=swordfish HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer swordfish\r\nnonsense\r\n\r\n');
    expect(answer).toContain('request_malformed');
    expect(answer + logged).not.toContain('swordfish');
    expect(logged).toContain('request refused');
    expect(logged).not.toMatch(/rawPacket/i);
  });

  test('an answer that is on its way is not cut by a second one', async () => {
    const socket = connect(port, '127.0.0.1');
    let heard = '';
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      heard += String(chunk);
      if (heard.endsWith('01234')) socket.write('GARBAGE\r\n\r\n');
    });
    socket.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
    await closed;
    expect(statusOf(heard)).toBe(200);
    expect(heard.endsWith('01234')).toBe(true);
  });

  test('after a whole answer on the same connection the broken request gets its own', async () => {
    const socket = connect(port, '127.0.0.1');
    let heard = '';
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    let isBroken = false;
    socket.on('data', (chunk) => {
      heard += String(chunk);
      if (isBroken || !heard.endsWith('}')) return;
      isBroken = true;
      socket.write('GARBAGE\r\n\r\n');
    });
    socket.write('GET /hello/x HTTP/1.1\r\nHost: a\r\n\r\n');
    await closed;
    expect([...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '400']);
  });
});

describe('a URL that cannot be read', () => {
  test.each(['/%zz', '/hello/%zz', '/hello/%E0%A4%A'])('%s gets our body', async (path) => {
    const answer = await say(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(statusOf(answer)).toBe(400);
    expect(bodyOf(answer)).toEqual({ code: 'request_malformed', message: expect.stringContaining('badly encoded'), hint: ERRORS.request_malformed.hint, details: { what: 'the URL is badly encoded' } });
  });
  test('a part that is too long gets our body', async () => {
    expect(await fetchBody(`/hello/${'x'.repeat(501)}`)).toMatchObject({ status: 400, body: { code: 'request_malformed' } });
  });
  test('a route that is not there is named without its query', async () => {
    const { status, body } = await fetchBody('/nowhere?code=swordfish');
    expect({ status, body }).toMatchObject({ status: 404, body: { code: 'route_not_found', details: { route: 'GET /nowhere' } } });
    expect(logged).not.toContain('swordfish');
  });
});

describe('a body that does not fit', () => {
  test.each([
    ['/wide', LIMIT],
    ['/narrow', 100],
  ])('larger than the limit of %s names that limit, %i bytes', async (path, limit) => {
    expect(await fetchBody(path, json(JSON.stringify({ name: 'x'.repeat(limit) })))).toMatchObject({ status: 413, body: { code: 'body_too_large', details: { limit } } });
  });
  test.each([
    ['not JSON', json('{"name":'), 400, 'body_invalid'],
    ['empty', json(''), 400, 'body_invalid'],
    ['another type', { method: 'POST', headers: { 'content-type': 'application/xml' }, body: 'x' }, 415, 'body_type_unsupported'],
    ['not as the schema says', json('{"name":"longer"}'), 400, 'body_invalid'],
    ['a key that reaches a prototype', json('{"__proto__":{"name":"x"},"name":"x"}'), 400, 'body_invalid'],
  ] as const)('%s', async (_what, init, status, code) => {
    expect(await fetchBody('/wide', init)).toMatchObject({ status, body: { code, hint: ERRORS[code].hint } });
  });
});

describe('what a client says of itself is not believed', () => {
  test.each(['x-request-id', 'request-id'])('its %s is not our id', async (header) => {
    const { body } = await fetchBody('/hello/x', { headers: { [header]: 'chosen-by-the-client' } });
    expect((body as { id: string }).id).not.toBe('chosen-by-the-client');
  });
  test('its X-Forwarded-For is not its address while no proxy is trusted (M1)', async () => {
    expect((await fetchBody('/hello/x', { headers: { 'x-forwarded-for': '10.0.0.6' } })).body).toMatchObject({ from: '127.0.0.1' });
  });
});

test('an error of ours says nothing of itself to the client, and all of itself to the log', async () => {
  expect(await fetchBody('/broken?token=swordfish')).toEqual({ status: 500, body: { code: 'internal', message: ERRORS.internal.text, hint: ERRORS.internal.hint } });
  expect(logged).toContain('the database password is hunter2');
  expect(logged).toContain('[redacted]');
  expect(logged).not.toContain('swordfish');
});

test('no deprecated option of fastify is used', async () => {
  // Warnings are emitted on a later tick.
  await wait(0);
  expect(warnings.filter((code) => code.startsWith('FST'))).toEqual([]);
});
