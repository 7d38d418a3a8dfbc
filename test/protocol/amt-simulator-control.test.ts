/** A fleet of simulated AMTs: its ports and UUIDs, its control page, and the operator's commands behind it. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCommandHooks, type Command, type CommandHooks } from '../../src/simulator/amt/command-hooks.js';
import { createAmtControl } from '../../src/simulator/amt/control.js';
import { startAmtFleet, type AmtFleet, type AmtFleetOptions } from '../../src/simulator/amt/fleet.js';
import { silentLogger } from '../../src/telemetry/log.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import { bootSource, post, power, PXE, returnValue, role } from '../support/amt-wire.js';
import { outOfTime } from '../support/held-time.js';
import { until } from '../support/until.js';

const UUID_BASE = '6d657461-6c66-4c6f-8000-0000000000fe';
let fleet: AmtFleet | null = null;
let control: HttpServer | null = null;
let hooks: CommandHooks | null = null;
afterEach(async () => {
  await control?.close();
  await hooks?.close();
  await fleet?.close();
  control = hooks = fleet = null;
});

async function start(options: Partial<AmtFleetOptions> = {}): Promise<AmtFleet> {
  fleet = await startAmtFleet({ count: 2, portBase: 0, uuidBase: UUID_BASE, initialPower: 'on', machine: () => ({ powerOn: () => undefined, powerOff: () => undefined }), log: silentLogger(), ...options });
  control = createAmtControl({ endpoints: fleet.endpoints, log: silentLogger() });
  await control.listen({ host: '127.0.0.1', port: 0 });
  return fleet;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: Record<string, unknown>;
  readonly headers: NodeJS.Dict<string | string[]>;
}
function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const { port } = control!.server.address() as { port: number };
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method, agent: false, headers: { ...(text && { 'Content-Type': 'application/json' }), 'Content-Length': Buffer.byteLength(text), ...headers } }, (response) => {
      let answer = '';
      response.on('data', (chunk: Buffer) => (answer += chunk.toString())).on('end', () => resolve({ status: response.statusCode!, text: answer, headers: response.headers, body: answer.startsWith('{') ? JSON.parse(answer) : {} }));
    });
    request.on('error', reject).end(text);
  });
}

describe('a fleet', () => {
  test('has a port and a UUID for each, and each its own power', async () => {
    const { endpoints } = await start({ count: 3 });
    expect(new Set(endpoints.map(({ amt }) => amt.port)).size).toBe(3);
    expect(endpoints.map(({ amt }) => amt.machineUuid.slice(-3))).toEqual(['0fe', '0ff', '100']);
    expect((await post(endpoints[1]!.amt, power(8))).map(returnValue)).toEqual([0]);
    expect(endpoints.map(({ amt }) => amt.power())).toEqual(['on', 'off-soft', 'on']);
  });
  test('takes consecutive ports, all or none', async () => {
    const fleetAt = (portBase: number, count: number): Promise<AmtFleet> => startAmtFleet({ count, portBase, uuidBase: UUID_BASE, machine: () => ({ powerOn: () => undefined, powerOff: () => undefined }), log: silentLogger() });
    // The port before it may be somebody else's: then two others are looked for.
    await until('a fleet has the two ports that it could not have', async () => {
      const first = await fleetAt(0, 1);
      const taken = first.endpoints[0]!.amt.port;
      const refused = await fleetAt(taken - 1, 2).catch((error: unknown) => error).finally(() => first.close());
      const second = await fleetAt(taken - 1, 2);
      const ports = second.endpoints.map(({ amt }) => amt.port);
      await second.close();
      expect([refused, ports]).toEqual([expect.objectContaining({ code: 'port_in_use' }), [taken - 1, taken]]);
      return true;
    });
  });
  test.each([
    ['ports above 65535', { count: 10, portBase: 65_530 }, '--port-base'],
    ['UUIDs that run out', { uuidBase: '6d657461-6c66-4c6f-8000-ffffffffffff' }, '--uuid-base'],
  ])('%s are refused', async (_name, options, name) => {
    await expect(start(options)).rejects.toMatchObject({ code: 'setting_invalid', details: { name } });
  });
});

describe('the control API', () => {
  test('shows endpoints, their next boot and what was counted', async () => {
    const { endpoints } = await start();
    await post(endpoints[1]!.amt, bootSource(PXE), role(1), power(5));
    await post(endpoints[1]!.amt, bootSource(PXE), role(1));
    const { body } = await ask('GET', '/api/endpoints');
    expect(body['endpoints']).toMatchObject([
      { endpoint: 0, power: 'on', armed: { boot: 'disk' }, counts: { requests: 0, powerCommands: {} }, thrown: {}, hook: null },
      { endpoint: 1, url: endpoints[1]!.amt.url, machineUuid: endpoints[1]!.amt.machineUuid, armed: { boot: 'network', source: PXE, role: 1 }, counts: { maxInFlight: 1, powerCommands: { 5: 1 } } },
    ]);
    expect((await ask('GET', '/api/endpoints/1/journal')).body).toMatchObject({ powerCommands: [{ value: 5, returnValue: 0 }], calls: ['ChangeBootOrder', 'SetBootConfigRole', 'RequestPowerStateChange', 'ChangeBootOrder', 'SetBootConfigRole'] });
  });
  test('throws switches, and says them back in the form it reads', async () => {
    const { endpoints } = await start();
    const thrown = { neverOff: true, sleepFirstN: 'always', refuse: { ChangeBootOrder: 2 } };
    const { status, body } = await ask('PATCH', '/api/endpoints/0/faults', thrown);
    expect([status, body['thrown']]).toEqual([200, thrown]);
    expect(endpoints.map(({ amt }) => amt.faults().sleepFirstN)).toEqual([Infinity, 0]);
    expect((await ask('PATCH', '/api/endpoints/0/faults', body['faults'])).body['faults']).toEqual(body['faults']);
  });
  test('presses the button', async () => {
    const { endpoints } = await start();
    expect((await ask('POST', '/api/endpoints/0/power', { power: 'hibernate' })).body).toMatchObject({ endpoint: 0, power: 'hibernate' });
    expect(endpoints[0]!.amt.power()).toBe('hibernate');
  });
  test.each([
    ['an unknown switch', 'PATCH', '/api/endpoints/0/faults', { neverOff: true, lag: 1 }, 400, 'body_invalid'],
    ['a value that is none', 'PATCH', '/api/endpoints/0/faults', { neverOff: true, lagMs: 'long' }, 400, 'body_invalid'],
    ['no body', 'PATCH', '/api/endpoints/0/faults', undefined, 400, 'body_invalid'],
    ['torn JSON', 'PATCH', '/api/endpoints/0/faults', '{"neverOff":', 400, 'body_invalid'],
    ['a power that is none', 'POST', '/api/endpoints/0/power', { power: 'asleep' }, 400, 'body_invalid'],
    ['an endpoint that is none', 'POST', '/api/endpoints/x/power', { power: 'on' }, 400, 'body_invalid'],
    ['an endpoint beyond the last', 'POST', '/api/endpoints/2/power', { power: 'on' }, 404, 'endpoint_not_found'],
    ['a form of another page', 'POST', '/api/endpoints/0/power', 'power=off-soft', 415, 'body_type_unsupported', { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['another name for this page', 'POST', '/api/endpoints/0/power', { power: 'off-soft' }, 400, 'request_malformed', { Host: 'evil.example:80' }],
  ] as const)('%s is refused and changes nothing', async (_name, method, path, body, status, code, headers: Record<string, string> = {}) => {
    const { endpoints } = await start();
    expect(await ask(method, path, body, headers)).toMatchObject({ status, body: { code, hint: expect.any(String) } });
    expect([endpoints[0]!.amt.power(), endpoints[0]!.amt.faults().neverOff]).toEqual(['on', false]);
  });
  test('a machine without mains has no button', async () => {
    await start();
    await ask('PATCH', '/api/endpoints/0/faults', { powerLost: true });
    expect(await ask('POST', '/api/endpoints/0/power', { power: 'on' })).toMatchObject({ status: 409, body: { code: 'request_refused' } });
  });
});

describe('the control page', () => {
  test('shows the table, and of one endpoint every switch with its sentence', async () => {
    const { endpoints } = await start();
    await ask('PATCH', '/api/endpoints/1/faults', { lagMs: 77 });
    const list = await ask('GET', '/');
    for (const { amt } of endpoints) expect(list.text).toContain(amt.url);
    expect(list.text).toContain('<td>lagMs</td>');
    const one = await ask('GET', '/?endpoint=1');
    const { faults } = (await ask('GET', '/api/endpoints/1')).body as { faults: Record<string, unknown> };
    for (const name of Object.keys(faults)) expect(one.text).toContain(`data-name="${name}"`);
    expect(one.text).toContain('<tr class="thrown"><td><code>lagMs</code></td>');
    expect((await ask('GET', '/?endpoint=9')).status).toBe(404);
  });
  test('escapes what it shows, and lets no script run but its own', async () => {
    hooks = createCommandHooks({ on: ['/no/<script>alert(1)</script>'], off: null, env: {}, log: silentLogger() });
    const { endpoints } = await start({ machine: (endpoint) => hooks!.machine(endpoint), initialPower: 'off-soft' });
    await post(endpoints[0]!.amt, power(2));
    await endpoints[0]!.amt.settled();
    const { text, headers } = await ask('GET', '/?endpoint=0');
    expect(text).toContain('/no/&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(text.match(/<script/g)).toHaveLength(1);
    const nonce = /<script nonce="([^"]+)">/.exec(text)![1]!;
    expect(headers['content-security-policy']).toContain(`default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`);
  });
});

describe('commands of the operator', () => {
  const withHooks = async (on: Command | null, off: Command | null, limitMs?: number): Promise<AmtFleet> => {
    hooks = createCommandHooks({ on, off, env: { PATH: process.env['PATH'] ?? '' }, log: silentLogger(), ...(limitMs && { limitMs }) });
    return start({ count: 1, initialPower: 'off-soft', machine: (endpoint) => hooks!.machine(endpoint) });
  };

  test('get the machine and the boot in their environment, in the order of the power', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'metalflow-hook-'));
    const note: Command = ['sh', '-c', 'echo "$METALFLOW_AMT_UUID $METALFLOW_AMT_PORT $METALFLOW_AMT_POWER $METALFLOW_AMT_BOOT" >> "$0"', join(folder, 'notes')];
    const { endpoints } = await withHooks(note, note);
    const { amt } = endpoints[0]!;
    await post(amt, bootSource(PXE), role(1), power(2), power(5), power(8));
    await amt.settled();
    const who = `${amt.machineUuid} ${amt.port}`;
    expect((await readFile(join(folder, 'notes'), 'utf8')).split('\n')).toEqual([`${who} on network`, `${who} off `, `${who} on disk`, `${who} off `, '']);
    expect(endpoints[0]!.hook()).toMatchObject({ runs: 4, failures: 0, last: { power: 'off', boot: null, result: 'done', exit: 0 } });
    await rm(folder, { recursive: true });
  });
  test.each([
    ['fails', ['sh', '-c', 'echo no such machine >&2; exit 3'], { result: 'failed', exit: 3, output: 'no such machine\n' }],
    ['is not there', ['/no/such/program'], { result: 'not-started', exit: null, output: expect.stringContaining('ENOENT') }],
  ] as const)('one that %s is shown, and AMT goes on', async (_name, command, last) => {
    const { endpoints } = await withHooks(command as unknown as Command, null);
    const { amt, hook } = endpoints[0]!;
    expect((await post(amt, power(2))).map(returnValue)).toEqual([0]);
    await amt.settled();
    expect(amt.power()).toBe('on');
    expect(hook()).toMatchObject({ runs: 1, failures: 1, last });
  });
  test.each([
    ['hangs', 'echo begun; : > "$0"; exec sleep 600', 1000],
    ['does not end when it is told to', 'trap "" TERM; echo begun; : > "$0"; while :; do sleep 600; done', 1000 + 2000],
  ])('one that %s is ended at its limit and shown, and AMT goes on', async (_name, script, patienceMs) => {
    const folder = await mkdtemp(join(tmpdir(), 'metalflow-hook-'));
    const begun = join(folder, 'begun');
    const { endpoints } = await withHooks(['sh', '-c', script, begun], null, 1000);
    const { amt, hook } = endpoints[0]!;
    await outOfTime(patienceMs, async () => {
      expect((await post(amt, power(2))).map(returnValue)).toEqual([0]);
      await amt.settled();
    }, () => existsSync(begun));
    expect(amt.power()).toBe('on');
    expect(hook()).toMatchObject({ runs: 1, failures: 1, last: { result: 'timed-out', output: 'begun\n' } });
    await rm(folder, { recursive: true });
  });
  test('those that run end with the simulator, and what they started too', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'metalflow-hook-'));
    const file = join(folder, 'pid');
    const { endpoints } = await withHooks(['sh', '-c', 'sleep 600 & echo $! > "$0.new"; mv "$0.new" "$0"; wait', file], null);
    await post(endpoints[0]!.amt, power(2));
    await until('the command runs', () => existsSync(file));
    await hooks!.close();
    await endpoints[0]!.amt.settled();
    expect(endpoints[0]!.hook()!.last!.result).toBe('stopped');
    // Killed is enough; the kernel takes its time, and whose child it then is has to reap it.
    const status = `/proc/${(await readFile(file, 'utf8')).trim()}/status`;
    const state = (): Promise<string> => readFile(status, 'utf8').then((text) => /State:\s+(\w)/.exec(text)![1]!, () => 'gone');
    expect(await until('its child has ended', async () => ['Z', 'gone'].includes(await state()))).toBe(true);
    await rm(folder, { recursive: true });
  });
});
