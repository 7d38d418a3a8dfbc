import { VERBS } from '../../src/contracts/messages.js';
import { ROLES, type NodeRow, type Role } from '../../src/contracts/operator.js';
import { failure, MetalflowError } from '../../src/domain/errors.js';
import type { Request } from '../../src/domain/runs.js';
import type { LifecycleState } from '../../src/domain/states.js';
import type { OperatorApiDeps } from '../../src/operatorapi/operator-api.js';
import { memoryNodes, memoryWorkflows, nodeRow, operatorTokens, startOperatorBench, TOKENS, type OperatorBench } from '../support/operator-ports.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
async function bench(change: Partial<OperatorApiDeps> = {}): Promise<OperatorBench> {
  const started = await startOperatorBench(change);
  closers.push(() => started.close());
  return started;
}


/** One server for the tests of a table that change nothing on it. */
function sharedBench(): () => OperatorBench {
  let shared: OperatorBench;
  beforeAll(async () => { shared = await startOperatorBench(); });
  beforeEach(() => shared.forget());
  afterAll(() => shared.close());
  return () => shared;
}

const READS = ['/api/v1/nodes', '/api/v1/nodes/7', '/api/v1/nodes/7/plan?kind=provision', '/api/v1/nodes/7/evidence', '/api/v1/nodes/7/journal', '/api/v1/nodes/7/logs', '/api/v1/runs/7/3', '/api/v1/strangers', '/metrics', '/api/v1/openapi.json'];
const NEEDS: Readonly<Record<string, Role>> = { hold: 'operator', resume: 'operator', cancel: 'operator', retry: 'operator', maintenance: 'operator', request: 'operator', approve: 'approver', adopt: 'approver' };
const BODIES: Readonly<Record<string, object>> = { maintenance: { on: true, reason: 'fan' }, request: { action: 'provision' } };

describe('who may what', () => {
  const shared = sharedBench();

  test.each(ROLES.flatMap((role) => READS.map((path) => [role, path] as const)))('%s reads %s', async (role, path) => {
    expect((await shared().call('GET', path, role)).status).toBe(200);
  });

  test.each(READS)('nobody reads %s without a token', async (path) => {
    const { status, body, headers } = await shared().call('GET', path, null);
    expect([status, body.code, headers.get('www-authenticate')]).toEqual([401, 'token_missing', 'Bearer']);
  });

  test.each(ROLES.flatMap((role) => Object.keys(NEEDS).map((verb) => [role, verb, ROLES.indexOf(role) >= ROLES.indexOf(NEEDS[verb]!)] as const)))('%s asks for %s: let through %s', async (role, verb, allowed) => {
    const b = shared();
    const { status, body } = await b.call('POST', `/api/v1/nodes/7/${verb}`, role, BODIES[verb] ?? { reason: 'because' });
    expect(allowed ? status < 300 : [status, body.code]).toEqual(allowed ? true : [403, 'token_role']);
    expect(b.said.length + b.requested.length).toBe(allowed ? 1 : 0);
    // Who tried is recorded too.
    expect(b.audit).toMatchObject([{ role, result: allowed ? 'accepted' : 'refused: token_role' }]);
  });

  test.each(['Bearer ', 'Bearer wrong', `Basic ${TOKENS.approver}`, TOKENS.approver, `Bearer ${TOKENS.approver} x`, `Bearer ${'x'.repeat(600)}`])('the header %j names nobody', async (authorization) => {
    const b = shared();
    const answer = await fetch(`${b.url}/api/v1/nodes`, { headers: { authorization } });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([401, 'token_unknown']);
  });

  test('a token that was taken out of the file is unknown at once', async () => {
    let tokens = true;
    const b = await bench({ tokens: async () => (tokens ? operatorTokens() : { tokens: [] }) });
    expect((await b.call('GET', '/api/v1/nodes', 'reader')).status).toBe(200);
    tokens = false;
    expect((await b.call('GET', '/api/v1/nodes', 'reader')).body.code).toBe('token_unknown');
  });

  test('every route that is registered names its role', async () => {
    const { body } = await (await bench()).call('GET', '/api/v1/openapi.json', 'reader');
    const open = Object.entries(body.paths as Record<string, Record<string, { description: string; summary: string }>>).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { description, summary }]) => ({ route: `${method} ${path}`, open: description === 'Needs no token.', summary })));
    expect(open.filter((route) => route.open).map(({ route }) => route)).toEqual(['get /healthz', 'get /readyz', 'post /webhooks/netbox']);
    expect(open.filter((route) => route.summary === '')).toEqual([]);
    expect(open.length).toBeGreaterThan(15);
  });
});

describe('verbs', () => {
  test.each(VERBS.map((verb) => [verb, ['hold', 'approve', 'adopt', 'maintenance'].includes(verb)] as const))('%s needs a reason: %s', async (verb, needed) => {
    const b = await bench();
    const { status, body } = await b.call('POST', `/api/v1/nodes/7/${verb}`, 'approver', { ...(verb === 'maintenance' && { on: true }), reason: '  ' });
    expect(needed ? [status, body.code] : status).toEqual(needed ? [400, 'reason_required'] : 200);
    expect(b.said).toHaveLength(needed ? 0 : 1);
  });

  test('what was said reaches the workflow with the name of the person, and is recorded', async () => {
    const b = await bench();
    const { body } = await b.call('POST', '/api/v1/nodes/node-7/maintenance', 'operator', { on: true, reason: 'new fan' });
    expect(body).toEqual({ accepted: true, text: 'maintenance taken' });
    expect(b.said).toEqual([{ deviceId: '7', verb: 'maintenance', input: { on: true, reason: 'new fan', by: 'otto' } }]);
    expect(b.audit).toEqual([{ at: '2026-11-30T12:00:00.000Z', by: 'otto', role: 'operator', what: 'maintenance on (new fan)', deviceId: '7', result: 'accepted' }]);
  });

  test('a verb that needs nothing said may come without a body', async () => {
    const b = await bench();
    expect((await b.call('POST', '/api/v1/nodes/7/retry', 'operator')).status).toBe(200);
    const answer = await fetch(`${b.url}/api/v1/nodes/7/retry`, { method: 'POST', headers: { authorization: `Bearer ${TOKENS.operator}`, 'content-type': 'application/json' } });
    expect(answer.status).toBe(200);
  });

  test('closing a node without the word of its BMC takes an approver and a reason, whatever the verb', async () => {
    const b = await bench();
    expect((await b.call('POST', '/api/v1/nodes/7/resume', 'operator', { attestRemoved: true, reason: 'x' })).body.code).toBe('token_role');
    expect((await b.call('POST', '/api/v1/nodes/7/resume', 'approver', { attestRemoved: true })).body.code).toBe('reason_required');
    expect((await b.call('POST', '/api/v1/nodes/7/approve', 'operator', { attestRemoved: true, reason: 'x' })).body.code).toBe('token_role');
    expect((await b.call('POST', '/api/v1/nodes/7/approve', 'approver', { attestRemoved: true, reason: '  ' })).body.code).toBe('reason_required');
    expect(b.said).toEqual([]);
    expect(b.audit.map(({ what, result }) => [what, result]).slice(0, 2)).toEqual([['resume attest-removed (x)', 'refused: token_role'], ['resume attest-removed', 'refused: reason_required']]);
  });

  test("a workflow's refusal is shown with its reason and recorded", async () => {
    const workflows = memoryWorkflows();
    workflows.say = async () => { throw new MetalflowError('verb_refused', { verb: 'retry', why: 'nothing failed' }); };
    const b = await bench({ workflows });
    expect(await b.call('POST', '/api/v1/nodes/7/retry', 'operator')).toMatchObject({ status: 409, body: { code: 'verb_refused', message: 'retry does not fit: nothing failed' } });
    expect(b.audit).toMatchObject([{ result: 'refused: verb_refused' }]);
  });

  test('B3: a device that metalflow cannot begin with is no unknown node: what is wrong with it is the answer', async () => {
    const refused = async () => [{ deviceId: '12', name: 'rack4-node7', failure: failure('device_invalid', { field: 'system_uuid', what: 'holds x, which is no UUID' }), since: '2026-11-30T12:00:00.000Z', isTold: true }];
    const b = await bench({ nodes: { ...memoryNodes(), refused } });
    for (const which of ['12', 'rack4-node7']) {
      for (const [method, path] of [['GET', ''], ['GET', '/plan?kind=provision'], ['POST', '/resume']] as const) {
        expect(await b.call(method, `/api/v1/nodes/${which}${path}`, 'operator')).toMatchObject({ status: 422, body: { code: 'device_invalid', message: 'NetBox field system_uuid: holds x, which is no UUID', hint: expect.stringContaining('fix NetBox') } });
      }
    }
    expect((await b.call('GET', '/api/v1/nodes', 'reader')).body.refused).toMatchObject([{ deviceId: '12', name: 'rack4-node7', failure: { code: 'device_invalid' } }]);
    expect((await b.call('GET', '/api/v1/nodes?site=ams1', 'reader')).body).not.toHaveProperty('refused');
    // What NetBox asks of it is between the person and NetBox.
    expect((await b.call('POST', '/api/v1/nodes/rack4-node7/request', 'operator', { action: null })).status).toBe(202);
    expect(b.requested).toMatchObject([{ deviceId: '12', action: null }]);
  });

  test('A7: a name that several nodes have is refused before anything is asked of anybody', async () => {
    const nodes = { ...memoryNodes(), find: async () => { throw new MetalflowError('node_ambiguous', { node: 'node-7', nodes: '7, 8' }); } };
    const b = await bench({ nodes });
    for (const [what, body] of [['retry', {}], ['request', { action: 'reprovision' }]] as const) {
      expect(await b.call('POST', `/api/v1/nodes/node-7/${what}`, 'operator', body)).toMatchObject({ status: 409, body: { code: 'node_ambiguous', hint: expect.stringContaining('device id') } });
    }
    expect([b.said, b.requested, b.signals]).toEqual([[], [], []]);
  });

  test('an audit line that cannot be stored does not undo what was done', async () => {
    const nodes = { ...memoryNodes(), recordAudit: async () => { throw new Error('SQLITE_FULL'); } };
    expect((await (await bench({ nodes })).call('POST', '/api/v1/nodes/7/cancel', 'operator')).status).toBe(200);
  });
});

describe('bad input has a code and changes nothing', () => {
  const shared = sharedBench();

  test.each<[string, unknown, number, string]>([
    ['/api/v1/nodes/7/hold', { reason: 'x', extra: 1 }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/hold', { reason: 'x', by: 'somebody else' }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/hold', { reason: 7 }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/hold', { reason: 'x'.repeat(1001) }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/hold', ['reason'], 400, 'body_invalid'],
    ['/api/v1/nodes/7/maintenance', { reason: 'x' }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/request', { action: 'explode' }, 400, 'body_invalid'],
    ['/api/v1/nodes/7/request', {}, 400, 'body_invalid'],
    ['/api/v1/nodes/7/request', undefined, 400, 'body_invalid'],
    ['/api/v1/nodes/8/hold', { reason: 'x' }, 404, 'node_not_found'],
    ['/api/v1/nodes/..%2F7/hold', { reason: 'x' }, 404, 'node_not_found'],
    ['/api/v1/nodes/nobody/request', { action: 'wipe' }, 404, 'node_not_found'],
    ['/api/v1/nodes/7/explode', {}, 404, 'route_not_found'],
    ['/api/v1/nodes/7/hold', { reason: 'x'.repeat(1_200_000) }, 413, 'body_too_large'],
  ])('POST %s %j', async (path, body, status, code) => {
    const b = shared();
    expect(await b.call('POST', path, 'approver', body)).toMatchObject({ status, body: { code } });
    expect([b.said, b.requested]).toEqual([[], []]);
  });

  test.each([
    ['/api/v1/nodes?state=exploding', 400, 'body_invalid'],
    ['/api/v1/nodes/8', 404, 'node_not_found'],
    ['/api/v1/nodes/7/plan', 400, 'body_invalid'],
    ['/api/v1/nodes/7/plan?kind=explode', 400, 'body_invalid'],
    ['/api/v1/nodes/7/journal?limit=0', 400, 'body_invalid'],
    ['/api/v1/nodes/7/journal?limit=100000', 400, 'body_invalid'],
    ['/api/v1/runs/7/4', 404, 'run_not_found'],
    ['/api/v1/runs/seven/3', 400, 'body_invalid'],
    ['/api/v1/runs/7/0', 400, 'body_invalid'],
  ])('GET %s', async (path, status, code) => {
    expect(await shared().call('GET', path, 'reader')).toMatchObject({ status, body: { code } });
  });

  test.each([['text/plain', 'reason=x', 415, 'body_type_unsupported'], ['application/json', '{"reason":', 400, 'body_invalid'], ['application/json', '{"__proto__":{"reason":"x"}}', 400, 'body_invalid'], ['application/json', '['.repeat(100_000), 400, 'body_invalid']])('%s body %.20s', async (type, body, status, code) => {
    const b = shared();
    const answer = await fetch(`${b.url}/api/v1/nodes/7/hold`, { method: 'POST', headers: { authorization: `Bearer ${TOKENS.operator}`, 'content-type': type }, body });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([status, code]);
    expect(b.said).toEqual([]);
  });
});

describe('reads', () => {
  test('a node shows what the store knows, what its workflows say now, and where to look', async () => {
    const { body } = await (await bench()).call('GET', '/api/v1/nodes/node-7?live=true', 'reader');
    expect(body).toMatchObject({
      node: { deviceId: '7', state: 'provisioning', openRun: 3 },
      live: { lifecycle: { deviceId: '7' }, run: { run: 3 }, problem: null },
      runs: [{ run: 3 }],
      links: { lifecycle: 'http://127.0.0.1:8233/namespaces/default/workflows/node%2F7', run: 'http://127.0.0.1:8233/namespaces/default/workflows/node%2F7%2Frun%2F3' },
    });
  });

  test('a node is shown from the store while Temporal is away, and without links where there is no UI', async () => {
    const workflows = memoryWorkflows();
    workflows.lifecycle = async () => { throw new MetalflowError('temporal_unavailable', { why: 'refused' }); };
    const { status, body } = await (await bench({ workflows, temporalUi: null })).call('GET', '/api/v1/nodes/7?live=true', 'reader');
    expect(status).toBe(200);
    expect(body).toMatchObject({ node: { deviceId: '7' }, live: { lifecycle: null, run: null, problem: { code: 'temporal_unavailable' } }, links: { lifecycle: null, run: null } });
  });

  test('no workflow is queried unless it is asked for: who polls, reads the store', async () => {
    const workflows = memoryWorkflows();
    let queries = 0;
    workflows.lifecycle = workflows.run = async () => {
      queries++;
      return null;
    };
    const b = await bench({ workflows });
    for (const path of ['/api/v1/nodes', '/api/v1/nodes/7', '/api/v1/runs/7/3']) expect((await b.call('GET', path, 'reader')).status).toBe(200);
    expect((await b.call('GET', '/api/v1/nodes/7', 'reader')).body.live).toBeNull();
    expect(queries).toBe(0);
  });

  test('the list takes filters', async () => {
    const b = await bench();
    const counts = [];
    for (const query of ['', '?state=provisioning', '?state=active', '?site=ams1&class=compute', '?site=fra1']) counts.push((await b.call('GET', `/api/v1/nodes${query}`, 'reader')).body.nodes.length);
    expect(counts).toEqual([1, 1, 0, 1, 0]);
  });

  test('a run, its journal and a plan', async () => {
    const b = await bench();
    expect((await b.call('GET', '/api/v1/runs/7/3?live=true', 'reader')).body).toMatchObject({ run: { workflowId: 'node/7/run/3' }, live: { run: { phase: 'acting' } } });
    expect((await b.call('GET', '/api/v1/nodes/7/journal?limit=5', 'reader')).body.journal).toMatchObject([{ text: 'limit 5' }]);
    expect((await b.call('GET', '/api/v1/nodes/7/plan?kind=wipe', 'reader')).body).toEqual({ plan: { deviceId: '7', kind: 'wipe' }, begins: 'at once', phases: ['planning'], destroys: [], notes: [] });
  });

  test("a planner's refusal keeps its code", async () => {
    const planner = { plan: async () => { throw new MetalflowError('class_unknown', { class: 'gpu' }); } };
    expect(await (await bench({ planner })).call('GET', '/api/v1/nodes/7/plan?kind=wipe', 'reader')).toMatchObject({ status: 422, body: { code: 'class_unknown', message: 'there is no class gpu' } });
  });

  test('the store being away is a 503 with a code', async () => {
    const nodes = { ...memoryNodes(), list: async () => { throw new Error('disk I/O error at /var/lib'); } };
    const { status, body } = await (await bench({ nodes })).call('GET', '/api/v1/nodes', 'reader');
    expect([status, body.code]).toEqual([503, 'store_unavailable']);
    expect(JSON.stringify(body)).not.toContain('/var/lib');
  });
});

describe('a request sets the field in NetBox', () => {
  test('in the name of the person, and the lifecycle is told at once', async () => {
    const b = await bench();
    expect(await b.call('POST', '/api/v1/nodes/node-7/request', 'operator', { action: 'retire' })).toMatchObject({ status: 202, body: { accepted: true, text: 'NetBox asks for retire now' } });
    expect(b.requested).toEqual([{ deviceId: '7', action: 'retire', by: 'otto' }]);
    expect(b.signals).toEqual([{ deviceId: '7', name: 'deviceChanged', payload: { source: 'operator' } }]);
  });
  test('for a device that no lifecycle has read yet, by its id', async () => {
    const b = await bench();
    expect((await b.call('POST', '/api/v1/nodes/99/request', 'operator', { action: 'provision' })).status).toBe(202);
    expect(b.requested).toEqual([{ deviceId: '99', action: 'provision', by: 'otto' }]);
  });
  test('null takes it back', async () => {
    const b = await bench();
    expect((await b.call('POST', '/api/v1/nodes/7/request', 'operator', { action: null })).status).toBe(202);
    expect(b.requested).toEqual([{ deviceId: '7', action: null, by: 'otto' }]);
  });
  test('is taken while Temporal is away: webhook and reconcile bring the news', async () => {
    const workflows = memoryWorkflows();
    workflows.signalLifecycle = async () => { throw new Error('UNAVAILABLE'); };
    expect((await (await bench({ workflows })).call('POST', '/api/v1/nodes/7/request', 'operator', { action: 'wipe' })).status).toBe(202);
  });
  describe('C2: of a node without an open run', () => {
    const at = (change: Partial<NodeRow>) => bench({ nodes: { ...memoryNodes([]), find: async () => nodeRow({ openRun: null, phase: null, ...change }) } });
    test.each<[LifecycleState, Request, RegExp]>([['active', 'provision', /it runs; ask for reprovision/], ['planned', 'reprovision', /ask for provision/], ['planned', 'wipe', /nothing to wipe/]])('%s: %s is refused at once, and NetBox is asked for nothing', async (state, action, why) => {
      const b = await at({ state });
      expect(await b.call('POST', '/api/v1/nodes/7/request', 'operator', { action })).toMatchObject({ status: 409, body: { code: 'request_refused', message: expect.stringMatching(why) } });
      expect([b.requested, b.signals]).toEqual([[], []]);
    });
    test.each<[string, Partial<NodeRow>, Request]>([
      ['a request that fits', { state: 'active' }, 'reprovision'],
      ['one that a hold keeps', { state: 'active', hold: failure('held_by_person') }, 'provision'],
      ['one that waits in maintenance', { state: 'maintenance' }, 'wipe'],
      ['one for a device that may be declared again', { state: 'retired' }, 'provision'],
    ])('%s goes to NetBox', async (_what, change, action) => {
      const b = await at(change);
      expect((await b.call('POST', '/api/v1/nodes/7/request', 'operator', { action })).status).toBe(202);
      expect(b.requested).toMatchObject([{ action }]);
    });
  });
  test('is refused with the code NetBox gave, and nobody is told', async () => {
    const b = await bench({ netboxRequests: { request: async () => { throw new MetalflowError('request_pending', { asked: 'wipe' }); } } });
    expect(await b.call('POST', '/api/v1/nodes/7/request', 'operator', { action: 'provision' })).toMatchObject({ status: 409, body: { code: 'request_pending' } });
    expect(b.signals).toEqual([]);
    expect(b.audit).toMatchObject([{ what: 'request provision', result: 'refused: request_pending' }]);
  });
});

describe('health and metrics', () => {
  test('healthz needs no token', async () => {
    expect(await (await bench()).call('GET', '/healthz', null)).toMatchObject({ status: 200, body: { status: 'ok' } });
  });
  test.each<[string, OperatorApiDeps['ready'], number, unknown]>([
    ['all there', async () => [{ name: 'store', ok: true }, { name: 'temporal', ok: true }], 200, { status: 'ready', checks: [{ name: 'store', ok: true }, { name: 'temporal', ok: true }] }],
    ['one away, without the why', async () => [{ name: 'temporal', ok: false, why: '10.0.0.1 refused' }], 503, { status: 'not-ready', checks: [{ name: 'temporal', ok: false }] }],
    ['a check that throws', async () => { throw new Error('x'); }, 503, { status: 'not-ready', checks: [{ name: 'internal', ok: false }] }],
  ])('readyz: %s', async (_, ready, status, body) => {
    expect(await (await bench({ ready })).call('GET', '/readyz', null)).toMatchObject({ status, body });
  });
  test('metrics are Prometheus text', async () => {
    const { body, headers } = await (await bench()).call('GET', '/metrics', 'reader');
    expect([headers.get('content-type'), body]).toEqual(['text/plain; version=0.0.4; charset=utf-8', '# HELP up\nup 1\n']);
  });
  test('the OpenAPI document has the bodies and parameters of the schemas', async () => {
    const { body } = await (await bench()).call('GET', '/api/v1/openapi.json', 'reader');
    expect(body.openapi).toBe('3.1.0');
    expect(body.paths['/api/v1/nodes/{id}/request'].post.requestBody.content['application/json'].schema).toMatchObject({ required: ['action'], additionalProperties: false });
    expect(body.paths['/api/v1/nodes/{id}/journal'].get.parameters.map(({ name, in: place, required }: Record<string, unknown>) => [name, place, required])).toEqual([['id', 'path', true], ['limit', 'query', false]]);
  });
});
