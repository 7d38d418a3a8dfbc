/** What a Redfish service may do wrong, and what merely looks like one: one clear code each, within the limit, and no command twice. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Bmc, CommandResult } from '../../src/contracts/bmc.js';
import { LARGEST_ANSWER } from '../../src/bmc/redfish/exchange.js';
import type { Timeouts } from '../../src/bmc/http-once.js';
import { createRedfishBmc } from '../../src/bmc/redfish/client.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { noSocketsLeft, ROOMY } from '../support/amt.js';
import { whileTimeStands } from '../support/held-time.js';
import { keptBytes } from '../support/memory.js';
import { CREDENTIALS, RESET, redfishError, SESSIONS, startRedfishBench, SYSTEM, type RedfishBench, type Reply } from '../support/redfish.js';
import { until } from '../support/until.js';

const benches: RedfishBench[] = [];
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  // While the servers still listen: it is the driver that has to hang up.
  await noSocketsLeft();
  await Promise.all([...benches.splice(0).map((bench) => bench.close()), ...closers.splice(0).map((close) => close())]);
});
async function start(): Promise<RedfishBench> {
  const bench = await startRedfishBench();
  benches.push(bench);
  return bench;
}
const resets = ({ journal }: RedfishBench): number => journal.filter(({ path }) => path === RESET).length;

describe('a command whose answer is missing or makes no sense', () => {
  test.each<[string, Reply | 'drop', CommandResult['kind']]>([
    ['dropped', 'drop', 'unknown'],
    ['answered by a proxy that gave up', { status: 504, body: '<html>Gateway Timeout</html>' }, 'unknown'],
    ['answered with an internal error', { status: 500, body: redfishError('InternalError', 'it failed') }, 'unknown'],
    ['answered with a 503 that is not the service its own', { status: 503, body: 'later' }, 'unknown'],
    ['sent elsewhere', { status: 308, headers: { location: 'http://elsewhere.example/' } }, 'refused'],
  ])('%s', async (_what, reply, kind) => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === RESET ? reply : undefined);
    expect(await bench.open().powerOff()).toMatchObject({ kind });
    expect(resets(bench)).toBe(1);
  });
  test('never answered', () => whileTimeStands(async (time) => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === RESET ? (time.pass(150), 'hang') : undefined);
    expect(await bench.open({ timeouts: { requestMs: 150 } }).powerOff()).toEqual({ kind: 'unknown', why: 'no whole answer within 150 ms' });
    expect(resets(bench)).toBe(1);
  }));
});

describe('a command that the service refuses', () => {
  test.each<[string, Reply, RegExp]>([
    ['HTTP 400 ActionParameterNotSupported', { status: 400, body: redfishError('ActionParameterNotSupported', 'ForceOff is not supported', 'Use another.') }, /^ForceOff is not supported Use another\.$/],
    ['HTTP 409 ResourceInUse', { status: 409, body: redfishError('ResourceInUse', 'The server is\nalready powered OFF.', 'None.') }, /^The server is already powered OFF\.$/],
    ['HTTP 403 InsufficientPrivilege', { status: 403, body: redfishError('InsufficientPrivilege', 'no') }, /role Operator/],
    ['HTTP 403', { status: 403 }, /role Operator/],
    ['HTTP 405', { status: 405 }, /no reason given/],
    ['HTTP 400 GeneralError', { status: 400, body: { error: { code: 'Base.1.0.GeneralError', message: 'only this text' } } }, /^only this text$/],
    ['HTTP 400 SYS999', { status: 400, body: { error: { '@Message.ExtendedInfo': [{ MessageId: 'IDRAC.2.8.SYS999' }] } } }, /^SYS999$/],
    ['HTTP 400 X', { status: 400, body: redfishError('X', 'y'.repeat(5000)) }, /^y{300}$/],
  ])('%s', async (value, reply, meaning) => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === RESET ? reply : undefined);
    expect(await bench.open().powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step: `POST ${RESET}`, value, meaning: expect.stringMatching(meaning) } });
    expect(resets(bench)).toBe(1);
  });
  test('for now is asked for again while it surely did nothing', async () => {
    const bench = await start();
    let busy = 2;
    bench.wrong = ({ path }) => (path === RESET && busy-- > 0 ? { status: 503, body: redfishError('ServiceTemporarilyUnavailable', 'wait') } : undefined);
    expect(await bench.open().powerOn()).toEqual({ kind: 'accepted' });
    expect([resets(bench), bench.system['PowerState']]).toEqual([3, 'On']);
  });
});

describe('a read', () => {
  test('that got no answer is asked again, three times in all', async () => {
    const bench = await start();
    let drops = 2;
    bench.wrong = ({ path }) => (path === SYSTEM && drops-- > 0 ? 'drop' : undefined);
    expect(await bench.open().observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    drops = 3;
    expect(await bench.open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: expect.stringContaining('closed') });
  });
  test('is over when the time for the method is, however often it may try', async () => {
    const bench = await start();
    bench.wrong = () => 'hang';
    expect(await bench.open({ timeouts: { methodMs: 100, requestMs: 50 } }).observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
  });
  test('is given up when the conversation is closed', async () => {
    const bench = await start();
    const bmc = bench.open();
    bench.wrong = () => (void bmc.close(), 'hang');
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: expect.stringContaining('given up') });
  });
  test.each<[string, Reply, RegExp]>([
    ['a web page', { status: 200, body: '<!DOCTYPE html><title>Login</title>' }, /web page instead of a Redfish answer/],
    ['JSON that ends too early', { status: 200, body: '{"PowerState": "On", "Bo' }, /is no JSON/],
    ['JSON of brackets', { status: 200, body: '['.repeat(100_000) }, /nested deeper/],
    ['JSON that reaches for a prototype', { status: 200, body: '{"__proto__": {"PowerState": "Off"}}' }, /__proto__/],
    ['a list', { status: 200, body: '[]' }, /expected object/i],
    ['nothing', { status: 200 }, /is no JSON/],
    ['more than it may', { status: 200, body: ' '.repeat(LARGEST_ANSWER + 1) }, /larger than/],
    ['a page of a proxy', { status: 404, body: '<html>not here</html>' }, /HTTP 404 with a web page/],
    ['a redirect', { status: 301, headers: { location: 'https://bmc.example/' } }, /sends us to https:\/\/bmc.example/],
  ])('of %s is bmc_answer_invalid, in words', async (_what, reply, why) => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === SYSTEM ? reply : undefined);
    expect(await bench.open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_answer_invalid', why: expect.stringMatching(why) });
  });
  test('that drips is cut off at the limit', () => whileTimeStands(async (time) => {
    const bench = await start();
    bench.wrong = ({ path }, response) => {
      if (path !== SYSTEM) return undefined;
      response.writeHead(200, { 'content-length': 1000 });
      const drip = setInterval(() => response.write(' ', () => time.pass(10)), 10);
      response.on('close', () => clearInterval(drip));
      return 'taken';
    };
    expect(await bench.open({ timeouts: { requestMs: 120, tries: 1 } }).observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: 'no whole answer within 120 ms' });
  }));
  test('of ten megabytes, twenty times, takes no memory', async () => {
    const bench = await start();
    const large = ' '.repeat(10 * 1024 * 1024);
    bench.wrong = ({ path }) => (path === SYSTEM ? { status: 200, body: large } : undefined);
    const bmc = bench.open();
    const read = async (): Promise<void> => expect(await bmc.observePower()).toMatchObject({ code: 'bmc_answer_invalid' });
    for (let warm = 0; warm < 5; warm += 1) await read();
    await noSocketsLeft();
    const before = keptBytes();
    for (let round = 0; round < 20; round += 1) await read();
    await noSocketsLeft();
    await until('not one answer is kept', () => keptBytes() - before < large.length);
  });
});

describe('something else at the address', () => {
  async function openAt(listener: (socket: Socket) => void, timeouts: Partial<Timeouts>): Promise<Bmc> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
      listener(socket);
      socket.resume();
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const bmc = createRedfishBmc({ address: { type: 'redfish', host: '127.0.0.1', port, tls: false }, credentials: CREDENTIALS, secret: 'bmc-redfish', log: silentLogger(), timeouts: { ...ROOMY, ...timeouts } });
    closers.push(() => bmc.close(), () => new Promise((resolve) => void server.close(resolve)));
    return bmc;
  }
  test.each<[string, (socket: Socket) => void, string, Partial<Timeouts>?]>([
    ['SSH', (socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'), 'bmc_answer_invalid'],
    ['a server that hangs up', (socket) => void socket.end(), 'bmc_unreachable'],
    ['a server that says nothing', () => undefined, 'bmc_unreachable', { requestMs: 100 }],
    ['a web server without Redfish', (socket) => void socket.once('data', () => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno')), 'bmc_answer_invalid'],
    ['headers without end', (socket) => void socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${'X-Long: y\r\n'.repeat(10_000)}`)), 'bmc_answer_invalid'],
  ])('%s', async (_what, listener, code, timeouts = {}) => {
    const bmc = await openAt(listener, timeouts);
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code });
    expect(await bmc.powerOff()).toMatchObject({ kind: expect.stringMatching(/^(refused|not-sent)$/) });
  });
  test('nobody: not sent', async () => {
    // A port that nobody is given who asks for any.
    const bmc = createRedfishBmc({ address: { type: 'redfish', host: '127.0.0.1', port: 1, tls: false }, credentials: CREDENTIALS, secret: 'bmc-redfish', log: silentLogger(), timeouts: ROOMY });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: 'connection refused' });
    expect(await bmc.powerOn()).toMatchObject({ kind: 'not-sent', why: 'connection refused' });
    await bmc.close();
  });
});

test('a session that cannot be ended holds up nobody', () => whileTimeStands(async (time) => {
  const bench = await start();
  const bmc = bench.open();
  await bmc.observePower();
  bench.wrong = ({ method }) => (method === 'DELETE' ? (time.pass(ROOMY.requestMs), 'hang') : undefined);
  await expect(bmc.close()).resolves.toBeUndefined();
  expect(bench.journal.at(-1)).toMatchObject({ method: 'DELETE' });
}));

test('neither the password nor a token is in the log', async () => {
  const bench = await start();
  const lines: string[] = [];
  const note = (...args: unknown[]): void => void lines.push(JSON.stringify(args));
  const log = { ...silentLogger(), debug: note, info: note, warn: note, error: note, trace: note } as unknown as ReturnType<typeof silentLogger>;
  const bmc = bench.open({ log });
  await bmc.observePower();
  bench.wrong = ({ path }) => (path === SESSIONS ? { status: 400, body: redfishError('X', `${CREDENTIALS.password} is no password`) } : path === RESET ? 'drop' : undefined);
  bench.sessions.clear();
  await bmc.powerOff();
  await bmc.close();
  expect(lines.length).toBeGreaterThan(3);
  expect(lines.join('\n')).not.toMatch(new RegExp(`P@ssw0rd1!|token-1|${Buffer.from(`${CREDENTIALS.username}:`).toString('base64').slice(0, 7)}`));
});
