import { reportBytes } from '../support/node-key.js';
import { closeAgentPlanes, declareWithRun, openAgentPlane, testNode } from '../support/agent-api-server.js';

afterEach(closeAgentPlanes);

const node = testNode(7);
const other = testNode(8);

describe('attestation over HTTP', () => {
  test('a node whose run waits is given a session, its install code and its attempt', async () => {
    const plane = await openAgentPlane();
    const bootAttempt = declareWithRun(plane.desk, node, 3);
    const reply = await plane.attest(node);
    expect(reply).toMatchObject({ status: 200, json: { nodeId: '7', bootAttempt, run: 3, waitFor: 'orders' } });
    expect(reply.json.token).toEqual(expect.any(String));
    expect(reply.json.installCode).toEqual(expect.any(String));
    expect(reply.headers['cache-control']).toBe('no-store');
    expect(plane.desk.evidence).toEqual([{ deviceId: '7', sender: '127.0.0.1', hasReport: true, verdict: expect.objectContaining({ accepted: true, proof: 'unproven', akThumbprint: node.key.thumbprint }) }]);
  });

  test('a planned device without a run waits in intake, without a code, in the simulation', async () => {
    const plane = await openAgentPlane({ simulation: true });
    plane.desk.declare({ deviceId: '7', mac: node.bootMac, systemUuid: node.systemUuid, admitted: true });
    const { json } = await plane.attest(node);
    expect(json).toEqual({ token: expect.any(String), nodeId: '7', bootAttempt: null, run: null, waitFor: 'intake' });
  });

  test('outside the simulation an unproven AK is kept out of intake', async () => {
    const plane = await openAgentPlane();
    plane.desk.declare({ deviceId: '7', mac: node.bootMac, systemUuid: node.systemUuid, admitted: true });
    expect(await plane.attest(node)).toMatchObject({ status: 403, json: { details: { reason: 'ak_unproven' } } });
  });

  test('a refusal says its reason and when to come back, and is kept as evidence', async () => {
    const plane = await openAgentPlane();
    const reply = await plane.attest(node);
    expect(reply).toMatchObject({ status: 403, json: { code: 'attestation_refused', details: { reason: 'node_unknown' }, retryAfterSeconds: 30 }, headers: { 'retry-after': '30' } });
    expect(reply.json.token).toBeUndefined();
    expect(plane.desk.evidence).toMatchObject([{ deviceId: null, sender: '127.0.0.1', verdict: { accepted: false, reason: 'node_unknown' } }]);
    expect(plane.desk.signals).toEqual([]);
  });

  test('a report is accepted once: the same challenge again is unknown (R1 j)', async () => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    const { challengeId, nonce } = await plane.hello(node);
    const bytes = reportBytes({ version: 1, nonce, systemUuid: node.systemUuid, bootMac: node.bootMac, lldpFrame: null, disks: [], agent: { name: 'test', version: '1' } });
    const body = { challengeId, report: bytes.toString('base64'), signature: node.key.sign(bytes).toString('base64') };
    expect((await plane.send('/v1/attest/report', { body })).status).toBe(200);
    expect(await plane.send('/v1/attest/report', { body })).toMatchObject({ status: 401, json: { code: 'challenge_unknown' } });
    const second = await plane.hello(node);
    expect(await plane.send('/v1/attest/report', { body: { ...body, challengeId: second.challengeId } })).toMatchObject({ status: 403, json: { details: { reason: 'nonce_wrong' } } });
    expect(plane.desk.signals).toHaveLength(1);
  });

  test('of two copies of a report sent at once one is accepted (R1 j)', async () => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    const { challengeId, nonce } = await plane.hello(node);
    const bytes = reportBytes({ version: 1, nonce, systemUuid: node.systemUuid, bootMac: node.bootMac, lldpFrame: null, disks: [], agent: { name: 'test', version: '1' } });
    const body = { challengeId, report: bytes.toString('base64'), signature: node.key.sign(bytes).toString('base64') };
    const replies = await Promise.all([1, 2, 3].map(() => plane.send('/v1/attest/report', { body })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  test('a challenge is over after its two minutes (R1 j)', async () => {
    let now = new Date('2026-11-30T10:00:00Z');
    const plane = await openAgentPlane({ now: () => now });
    declareWithRun(plane.desk, node);
    const { challengeId } = await plane.hello(node);
    now = new Date('2026-11-30T10:02:01Z');
    expect(await plane.send('/v1/attest/report', { body: { challengeId, report: 'e30=', signature: 'AAAA' } })).toMatchObject({ status: 401, json: { code: 'challenge_unknown' } });
  });

  test("node A's report on a challenge of node B is refused (R1 i), and a DER signature as malformed (R1 k)", async () => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    declareWithRun(plane.desk, other);
    expect(await plane.attest(node, { systemUuid: other.systemUuid, bootMac: other.bootMac })).toMatchObject({ status: 403, json: { details: { reason: 'system_uuid_differs' } } });
    const { challengeId } = await plane.hello(node);
    const bytes = Buffer.from('{}');
    const body = { challengeId, report: bytes.toString('base64'), signature: node.key.signDer(bytes).toString('base64') };
    expect(await plane.send('/v1/attest/report', { body })).toMatchObject({ status: 403, json: { details: { reason: 'signature_malformed' } } });
  });

  test('a second AK within one boot attempt is refused, the first may attest again', async () => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    await plane.admit(node);
    expect(await plane.attest({ ...node, key: other.key })).toMatchObject({ status: 403, json: { details: { reason: 'ak_changed' } } });
    expect((await plane.attest(node)).status).toBe(200);
  });

  test('attesting again revokes the session before', async () => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    const first = await plane.admit(node);
    await plane.admit(node);
    expect(await plane.send('/v1/orders/next?wait=0', { token: first.token })).toMatchObject({ status: 401, json: { code: 'token_unknown' } });
  });

  test('one sender gets its share of attestations a minute, and a new minute a new share', async () => {
    let now = new Date('2026-11-30T10:00:00Z');
    const plane = await openAgentPlane({ now: () => now, limits: { attestations: 3 } });
    const hello = { body: { systemUuid: node.systemUuid, bootMac: node.bootMac, akPublic: node.key.akPublic } };
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) statuses.push((await plane.send('/v1/attest/hello', hello)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect((await plane.send('/v1/attest/hello', { ...hello, localAddress: '127.0.0.2' })).status).toBe(200);
    now = new Date('2026-11-30T10:01:00Z');
    expect((await plane.send('/v1/attest/hello', hello)).status).toBe(200);
  });
});

describe('health', () => {
  test('the plane is ready while the store answers, and alive without it', async () => {
    const plane = await openAgentPlane();
    expect(await plane.send('/readyz')).toMatchObject({ status: 200, json: { status: 'ready' } });
    plane.desk.attestation.findNode = async () => Promise.reject(new Error('disk I/O error'));
    expect(await plane.send('/readyz')).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
    expect(await plane.send('/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
  });
});
