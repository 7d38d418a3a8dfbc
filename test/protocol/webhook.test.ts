import { connect } from 'node:net';
import { createNetboxClient } from '../../src/netbox/client.js';
import type { OperatorApiDeps } from '../../src/operatorapi/operator-api.js';
import { createOperatorApi } from '../../src/operatorapi/operator-api.js';
import { startNetboxStandIn } from '../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { deviceHook, HOOK_SECRET, postHook, recordedHooks, sign } from '../support/netbox-hooks.js';
import { memoryHooks, memoryWorkflows, startOperatorBench, type OperatorBench } from '../support/operator-ports.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
async function bench(change: Partial<OperatorApiDeps> = {}): Promise<OperatorBench> {
  const started = await startOperatorBench(change);
  closers.push(() => started.close());
  return started;
}
const devices = (b: OperatorBench): string[] => b.signals.map(({ deviceId }) => deviceId);

describe('webhooks that a real NetBox 4.7.3 sent', () => {
  test.each([
    ['device-updated-desired-action-set', ['1'], ['signalled']],
    ['device-updated-desired-action-cleared', ['1'], ['signalled']],
    ['interface-updated', ['1'], ['signalled']],
    ['mac-created', ['1'], ['signalled']],
    ['devices-bulk-updated', ['2', '3', '4'], ['signalled', 'signalled', 'signalled']],
    ['retry-after-500', ['1'], ['signalled', 'repeated', 'repeated']],
    ['device-deleted', ['1', '1', '1', '1', '1', '1', '1'], Array(7).fill('signalled')],
  ])('%s: verified under their own signature, devices %j told', async (name, told, taken) => {
    const b = await bench();
    const answers = [];
    for (const { body, headers } of recordedHooks(name)) answers.push(await postHook(b.url, body, { 'x-hook-signature': headers['X-Hook-Signature']! }));
    expect(answers.map(({ status, body }) => [status, body.taken])).toEqual(taken.map((one) => [202, one]));
    expect(b.signals).toEqual(told.map((deviceId) => ({ deviceId, name: 'deviceChanged', payload: { source: 'webhook' } })));
  });

  test('a body template that drops what metalflow reads is refused with the reason', async () => {
    const b = await bench();
    const [{ body, headers }] = recordedHooks('filtered-body-template') as [ReturnType<typeof recordedHooks>[0]];
    expect(await postHook(b.url, body, { 'x-hook-signature': headers['X-Hook-Signature']! })).toMatchObject({ status: 400, body: { code: 'body_invalid', message: expect.stringContaining('data') } });
  });
});

describe('the signature', () => {
  const body = deviceHook();
  test.each<[string, Record<string, string>, string]>([
    ['missing', {}, 'signature_missing'],
    ['empty', { 'x-hook-signature': '' }, 'signature_missing'],
    ['of another secret', { 'x-hook-signature': sign(body, 'other') }, 'signature_wrong'],
    ['of another body', { 'x-hook-signature': sign(`${body} `) }, 'signature_wrong'],
    ['with a prefix', { 'x-hook-signature': `sha512=${sign(body)}` }, 'signature_wrong'],
    ['cut short', { 'x-hook-signature': sign(body).slice(0, 126) }, 'signature_wrong'],
    ['no hex', { 'x-hook-signature': 'z'.repeat(128) }, 'signature_wrong'],
  ])('%s: 401, and nobody is told', async (_, headers, code) => {
    const b = await bench();
    expect(await postHook(b.url, body, headers)).toMatchObject({ status: 401, body: { code } });
    expect(b.signals).toEqual([]);
  });

  test('in capitals is the same signature', async () => {
    const b = await bench();
    expect((await postHook(b.url, body, { 'x-hook-signature': sign(body).toUpperCase() })).status).toBe(202);
  });

  test('under an empty secret is no signature: the plane does not start', () => {
    expect(() => createOperatorApi({ webhookSecret: '', log: silentLogger() } as OperatorApiDeps)).toThrow(expect.objectContaining({ code: 'setting_invalid' }));
  });

  test('without a secret there is no webhook', async () => {
    const b = await bench({ webhookSecret: null });
    expect(await postHook(b.url, body)).toMatchObject({ status: 404, body: { code: 'route_not_found' } });
  });
});

describe('bad bodies are refused, change nothing, and the plane goes on', () => {
  const nested = '['.repeat(200_000);
  let b: OperatorBench;
  let good = 0;
  beforeAll(async () => { b = await startOperatorBench(); });
  beforeEach(() => b.forget());
  afterAll(() => b.close());
  test.each<[string, string, number, string]>([
    ['a JSON list (N5)', '[{"event":"updated"}]', 400, 'body_invalid'],
    ['truncated JSON (N5)', deviceHook().slice(0, 400), 400, 'body_invalid'],
    ['3 MB (N5)', deviceHook({ data: { comments: 'x'.repeat(3_000_000) } }), 413, 'body_too_large'],
    ['no JSON', 'event=updated', 400, 'body_invalid'],
    ['nothing', '', 400, 'body_invalid'],
    ['a number', '7', 400, 'body_invalid'],
    ['null', 'null', 400, 'body_invalid'],
    ['200,000 brackets', nested, 400, 'body_invalid'],
    ['no type', deviceHook({ top: { object_type: undefined } }), 400, 'body_invalid'],
    ['no data', deviceHook({ top: { data: undefined } }), 400, 'body_invalid'],
    ['a device without id', deviceHook({ data: { id: null } }), 400, 'body_invalid'],
    ['an id that is a path', deviceHook({ data: { id: '../7' } }), 400, 'body_invalid'],
    ['a negative id', deviceHook({ id: -1 }), 400, 'body_invalid'],
    ['no last_updated', deviceHook({ data: { last_updated: null } }), 400, 'body_invalid'],
    ['a last_updated without zone', deviceHook({ lastUpdated: '2026-11-30T10:00:00' }), 400, 'body_invalid'],
    ['a prototype key', '{"__proto__":{"event":"updated"}}', 400, 'body_invalid'],
  ])('%s', async (_, body, status, code) => {
    expect(await postHook(b.url, body)).toMatchObject({ status, body: { code, hint: expect.any(String) } });
    expect(b.signals).toEqual([]);
    expect((await postHook(b.url, deviceHook({ id: (good += 1) }))).body.taken).toBe('signalled');
  });

  test('a connection that ends in the middle of a body', async () => {
    const { hostname, port } = new URL(b.url);
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.end('POST /webhooks/netbox HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{"event"'));
      socket.on('close', () => resolve()).on('error', () => undefined).resume();
    });
    expect((await postHook(b.url, deviceHook({ id: (good += 1) }))).body.taken).toBe('signalled');
  });
});

describe('what a webhook says (N5)', () => {
  test.each<[string, unknown]>([['text', 'provision'], ['{value, label}', { value: 'provision', label: 'Provision' }]])('an action as %s is the same event', async (_, action) => {
    const b = await bench();
    await postHook(b.url, deviceHook({ action: 'provision' }));
    expect((await postHook(b.url, deviceHook({ action }))).body.taken).toBe('repeated');
    expect(devices(b)).toEqual(['1']);
  });

  test.each<[unknown]>([[null], [''], [undefined]])('action %j asks nothing and says nothing of it', async (action) => {
    const b = await bench();
    expect(await postHook(b.url, deviceHook({ action }))).toEqual({ status: 202, body: { taken: 'signalled', deviceId: '1' } });
  });

  test.each<[unknown]>([['PROVISION '], ['explode'], [['provision']], [7]])('action %j is answered 202, names the field, and only has the device read', async (action) => {
    const b = await bench();
    const { status, body } = await postHook(b.url, deviceHook({ action }));
    expect({ status, taken: body.taken }).toEqual({ status: 202, taken: 'signalled' });
    expect(body.why).toMatch(/desired_action holds .* none of provision, reprovision, wipe, retire: it starts nothing/);
    expect(b.signals).toEqual([{ deviceId: '1', name: 'deviceChanged', payload: { source: 'webhook' } }]);
  });

  test.each<[string, 'signalled' | 'ignored', Record<string, unknown>]>([
    ['object_type only', 'signalled', { object_type: 'dcim.device' }],
    ['model only', 'signalled', { object_type: undefined, model: 'device' }],
    ['a virtual machine', 'ignored', { object_type: 'virtualization.virtualmachine' }],
    ['a virtual machine that also says device', 'ignored', { object_type: 'virtualization.virtualmachine', model: 'device' }],
    ['another model', 'ignored', { object_type: undefined, model: 'rack' }],
    ['the name of an inherited member', 'ignored', { object_type: 'constructor' }],
    ['a job event', 'ignored', { event: 'job_started' }],
  ])('%s is %s', async (_, taken, top) => {
    const b = await bench();
    const { status, body } = await postHook(b.url, deviceHook({ top }));
    expect({ status, taken: body.taken }).toEqual({ status: 202, taken });
    expect(b.signals).toHaveLength(taken === 'signalled' ? 1 : 0);
    expect(body.why).toEqual(taken === 'ignored' ? expect.stringMatching(/nothing metalflow reads|changes no object/) : undefined);
  });

  test("an address on a virtual machine's interface is on no device", async () => {
    const b = await bench();
    const body = deviceHook({ top: { object_type: 'ipam.ipaddress' }, data: { address: '192.0.2.1/24', assigned_object: { id: 1, virtual_machine: { id: 1 } } } });
    expect((await postHook(b.url, body)).body).toMatchObject({ taken: 'ignored', why: expect.stringContaining('no device') });
  });
});

describe('sent twice, late, out of order', () => {
  const at = (n: number): string => `2026-11-30T10:00:00.${String(n).padStart(6, '0')}Z`;

  test('two events of one save tell the device once (N1 a), an hour later still once (N1 c)', async () => {
    const b = await bench();
    const first = deviceHook({ id: 7, requestId: 'R', lastUpdated: at(0), data: { tags: [] } });
    const second = deviceHook({ id: 7, requestId: 'R', lastUpdated: at(20_000), data: { tags: [{ id: 1, name: 'x' }] } });
    const answers = [];
    for (const body of [first, second, first, second]) answers.push(await postHook(b.url, body));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    expect(devices(b)).toEqual(['7']);
  });

  test('three devices of one bulk edit are all told, though they share a request (N1 b)', async () => {
    const b = await bench();
    for (const id of [7, 8, 9]) await postHook(b.url, deviceHook({ id, requestId: 'R2' }));
    expect(devices(b)).toEqual(['7', '8', '9']);
  });

  test('the older of two is stale when it comes last, and a day later (N3)', async () => {
    const b = await bench();
    const newer = deviceHook({ lastUpdated: '2026-11-30T10:00:05.123456Z', action: 'retire', requestId: 'B' });
    const older = deviceHook({ lastUpdated: '2026-11-30 10:00:00.968016+00:00', action: 'provision', requestId: 'A' });
    const taken = [];
    for (const body of [newer, older, older]) taken.push((await postHook(b.url, body)).body.taken);
    expect(taken).toEqual(['signalled', 'stale', 'stale']);
  });

  test('the same stamp with the same content is a repetition, with other content it is news (N3)', async () => {
    const b = await bench();
    const taken = [];
    for (const action of ['provision', 'provision', null]) taken.push((await postHook(b.url, deviceHook({ lastUpdated: at(1), action }))).body.taken);
    expect(taken).toEqual(['signalled', 'repeated', 'signalled']);
  });

  test('the same action asked again is told again, though the rule never told of the taking', async () => {
    const b = await bench();
    await postHook(b.url, deviceHook({ lastUpdated: at(1), requestId: 'monday' }));
    await postHook(b.url, deviceHook({ lastUpdated: at(2), requestId: 'tuesday' }));
    expect(devices(b)).toEqual(['1', '1']);
  });

  test('a save that touched nothing metalflow reads is no news', async () => {
    const b = await bench();
    await postHook(b.url, deviceHook({ action: null, lastUpdated: at(1), requestId: 'a' }));
    const own = deviceHook({ action: null, lastUpdated: at(2), requestId: 'b', data: { comments: 'hello', local_context_data: { other: 1 } } });
    expect((await postHook(b.url, own)).body.taken).toBe('repeated');
  });

  test('a deletion is news although it does not move last_updated', async () => {
    const b = await bench();
    await postHook(b.url, deviceHook({ lastUpdated: '2026-11-30T11:49:53.374774Z' }));
    expect((await postHook(b.url, deviceHook({ event: 'deleted', lastUpdated: '2026-11-30T11:49:53.374774Z' }))).body.taken).toBe('signalled');
    expect((await postHook(b.url, deviceHook({ lastUpdated: '2026-11-30T11:49:53.400000Z' }))).body.taken).toBe('stale');
  });
});

describe('when a part is away', () => {
  test('Temporal: 503, not remembered, and the repetition is told', async () => {
    const workflows = memoryWorkflows();
    const working = workflows.signalLifecycle;
    workflows.signalLifecycle = async () => { throw new Error('14 UNAVAILABLE: connection refused'); };
    const b = await bench({ workflows });
    expect(await postHook(b.url, deviceHook())).toMatchObject({ status: 503, body: { code: 'temporal_unavailable' } });
    workflows.signalLifecycle = working;
    expect((await postHook(b.url, deviceHook())).body.taken).toBe('signalled');
  });

  test('a lifecycle that just closed never shows NetBox a NotFound (W1 c)', async () => {
    const workflows = memoryWorkflows();
    workflows.signalLifecycle = async () => { throw Object.assign(new Error('workflow execution already completed: NotFound'), { name: 'WorkflowNotFoundError' }); };
    const b = await bench({ workflows });
    const { status, body } = await postHook(b.url, deviceHook());
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'temporal_unavailable' });
    expect(JSON.stringify(body)).not.toMatch(/not ?found/i);
  });

  test('the store: 503, and nobody is told', async () => {
    const b = await bench({ hooks: { judge: async () => { throw new Error('SQLITE_BUSY'); }, remember: async () => undefined } });
    expect(await postHook(b.url, deviceHook())).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    expect(b.signals).toEqual([]);
  });

  test('the store after the signal: 202, since the device was told', async () => {
    const b = await bench({ hooks: { ...memoryHooks(), remember: async () => { throw new Error('SQLITE_BUSY'); } } });
    expect((await postHook(b.url, deviceHook())).body.taken).toBe('signalled');
    expect(devices(b)).toEqual(['1']);
  });
});

describe('the stand-in and the route, end to end', () => {
  const TOKEN = 'nbt_testtoken001.0123456789012345678901234567890123456789';
  async function pair() {
    const b = await bench();
    const netbox = await startNetboxStandIn({ token: TOKEN, webhook: { url: `${b.url}/webhooks/netbox`, secret: HOOK_SECRET }, log: silentLogger() });
    closers.push(() => netbox.close());
    return { b, netbox };
  }

  test("a person's edits arrive signed and are told, one each", async () => {
    const { b, netbox } = await pair();
    const id = netbox.addDevice({ name: 'n', customFields: { bmc_type: 'amt' } });
    netbox.patchDevice(id, { custom_fields: { desired_action: 'provision' } });
    netbox.patchDevice(id, { custom_fields: { desired_action: null } });
    netbox.deleteDevice(id);
    await netbox.settled();
    expect(netbox.deliveries().map(({ event, outcome }) => [event, outcome])).toEqual(['created', 'updated', 'updated', 'deleted'].map((event) => [event, { kind: 'answered', status: 202 }]));
    expect(devices(b)).toEqual([id, id, id, id]);
  });

  test("metalflow's own write comes back as a hook too: a status is told, the link it keeps for people is not", async () => {
    const { b, netbox } = await pair();
    const client = createNetboxClient({ url: netbox.url, token: TOKEN, log: silentLogger() });
    closers.push(() => client.close());
    const device = (await client.readDevice(netbox.addDevice({ name: 'n' })))!;
    const written = await client.writeDevice(device, { fields: { lifecycle_url: 'http://127.0.0.1:8233/' }, message: 'link' });
    expect(written.kind === 'written' && (await client.writeDevice(written.device, { status: 'staged', message: 'state' })).kind).toBe('written');
    await netbox.settled();
    expect(netbox.deliveries().map(({ body }) => JSON.parse(body).request.user)).toEqual(['a-person', 'metalflow', 'metalflow']);
    expect(devices(b)).toEqual([device.id, device.id]);
  });

  test('a save that changes nothing is sent and not told', async () => {
    const { b, netbox } = await pair();
    const id = netbox.addDevice({ name: 'n' });
    netbox.patchDevice(id, {});
    await netbox.settled();
    expect(netbox.deliveries()).toHaveLength(2);
    expect(devices(b)).toEqual([id]);
  });

  test('a failed job that is run again by hand, with its old body, is stale (N3)', async () => {
    const { b, netbox } = await pair();
    netbox.dropWebhooks = true;
    const id = netbox.addDevice({ name: 'n' });
    netbox.dropWebhooks = false;
    netbox.patchDevice(id, { status: 'active' });
    await netbox.settled();
    const [lost] = netbox.deliveries();
    expect(lost!.outcome).toEqual({ kind: 'dropped' });
    expect((await postHook(b.url, lost!.body, { ...lost!.headers })).body.taken).toBe('stale');
    expect(devices(b)).toEqual([id]);
  });

  test('a receiver that is away loses the hook, and NetBox goes on', async () => {
    const { b, netbox } = await pair();
    await b.close();
    const id = netbox.addDevice({ name: 'n' });
    await netbox.settled();
    expect(netbox.deliveries()[0]!.outcome).toMatchObject({ kind: 'failed' });
    expect(netbox.device(id).name).toBe('n');
  });
});
