import { closeAgentPlanes, declareWithRun, openAgentPlane, testNode, type AgentPlane } from '../support/agent-api-server.js';

afterEach(closeAgentPlanes);

const node = testNode(7);
const other = testNode(8);
const SEED = `/v1/seed/${node.systemUuid}`;
const SEEN = `/v1/seen/${node.systemUuid}`;

async function openWithCode(options: Parameters<typeof openAgentPlane>[0] = {}): Promise<{ plane: AgentPlane; code: string; token: string }> {
  const plane = await openAgentPlane(options);
  declareWithRun(plane.desk, node, 3);
  const { installCode, token } = await plane.admit(node);
  return { plane, code: installCode!, token };
}

describe('redeeming an install code', () => {
  test('the seed is served for the code as a bearer, and again to the same sender', async () => {
    const { plane, code } = await openWithCode();
    for (const round of [1, 2]) {
      const reply = await plane.send(SEED, { token: code });
      expect({ round, ...reply }).toMatchObject({ round, status: 200, json: { node: 'node-7', run: 3 }, headers: { 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' } });
    }
    expect(plane.desk.signals.filter((signal) => signal.startsWith('seed-fetched'))).toEqual(['seed-fetched 7/3']);
  });

  test('the seed is served for the code in the URL, as Talos sends it, with the UUID in any case', async () => {
    const { plane, code } = await openWithCode();
    expect(await plane.send(`/v1/seed/${node.systemUuid.toUpperCase()}?code=${code}`)).toMatchObject({ status: 200, json: { run: 3 } });
  });

  test.each<[string, (code: string) => [string, { token?: string; method?: string; localAddress?: string }], number, string]>([
    ['no code', () => [SEED, {}], 401, 'token_missing'],
    ['an empty code', () => [`${SEED}?code=`, {}], 400, 'body_invalid'],
    ['a wrong code', () => [SEED, { token: 'guessed' }], 401, 'code_unknown'],
    ['the right code of another machine', (code) => [`/v1/seed/${other.systemUuid}`, { token: code }], 401, 'code_unknown'],
    ['the code twice in the URL', (code) => [`${SEED}?code=${code}&code=${code}`, {}], 400, 'body_invalid'],
    ['a UUID that is none', (code) => ['/v1/seed/4711', { token: code }], 400, 'body_invalid'],
    ['a UUID of zeros', (code) => ['/v1/seed/00000000-0000-0000-0000-000000000000', { token: code }], 400, 'body_invalid'],
  ])('%s gets no seed', async (_, ask, status, errorCode) => {
    const { plane, code } = await openWithCode();
    const [path, sent] = ask(code);
    expect(await plane.send(path, sent)).toMatchObject({ status, json: { code: errorCode } });
    expect(plane.desk.signals).not.toContain('seed-fetched 7/3');
  });

  test('a used code is spent for another sender, and for the same one after its window', async () => {
    let now = new Date('2026-11-30T10:00:00Z');
    const { plane, code } = await openWithCode({ now: () => now });
    expect((await plane.send(SEED, { token: code })).status).toBe(200);
    expect(await plane.send(SEED, { token: code, localAddress: '127.0.0.2' })).toMatchObject({ status: 410, json: { code: 'code_spent' } });
    now = new Date('2026-11-30T10:16:00Z');
    expect(await plane.send(SEED, { token: code })).toMatchObject({ status: 410, json: { code: 'code_spent' } });
    expect(plane.desk.senders).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.1']);
  });

  test('HEAD does not redeem a code', async () => {
    const { plane, code } = await openWithCode();
    expect((await plane.send(SEED, { token: code, method: 'HEAD' })).status).toBe(404);
    expect(plane.desk.senders).toEqual([]);
  });

  test('a session token is no install code, and an install code no session token', async () => {
    const { plane, code, token } = await openWithCode();
    expect((await plane.send(SEED, { token })).json.code).toBe('code_unknown');
    expect((await plane.send('/v1/orders/next?wait=0', { token: code })).json.code).toBe('token_unknown');
  });

  test.each([
    ['JSON', { body: { hello: 'there' } }],
    ['the form of phone_home', { raw: 'instance_id=x&pub_key_rsa=y', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['no body', { method: 'POST' }],
  ])('the installed system is seen once, with %s', async (_, sent) => {
    const { plane, code } = await openWithCode();
    for (const round of [1, 2]) expect({ round, ...(await plane.send(`${SEEN}?code=${code}`, sent)) }).toMatchObject({ round, status: 204, text: '' });
    expect(plane.desk.signals.filter((signal) => signal.startsWith('seen'))).toEqual(['seen 7/3']);
  });

  test('a sender that guesses codes and tokens is shut out for the minute, others are not', async () => {
    let now = new Date('2026-11-30T10:00:00Z');
    const { plane, code, token } = await openWithCode({ now: () => now, limits: { failures: 3 } });
    await plane.send(SEED, { token: 'guess-1' });
    await plane.send(`${SEEN}?code=guess-2`, { method: 'POST' });
    await plane.send('/v1/orders/next?wait=0', { token: 'guess-3' });
    expect(await plane.send(SEED, { token: code })).toMatchObject({ status: 429, json: { code: 'rate_limited' } });
    expect((await plane.send('/v1/orders/next?wait=0', { token })).status).toBe(429);
    expect((await plane.send('/v1/orders/next?wait=0', { token, localAddress: '127.0.0.2' })).status).toBe(204);
    now = new Date('2026-11-30T10:01:00Z');
    expect((await plane.send(SEED, { token: code })).status).toBe(200);
  });
});

describe('secrets and logs', () => {
  test('no code, token, nonce, signature or seed is in any log line, at the finest level', async () => {
    const { plane, code, token } = await openWithCode();
    const challenge = await plane.hello(node);
    await plane.send(`${SEED}?code=${code}`);
    await plane.send(`/v1/seed/${other.systemUuid}?code=${code}`);
    await plane.send(`${SEED}?code=${code}`, { localAddress: '127.0.0.2' });
    await plane.send(`/v1/nowhere?code=${code}&token=${token}`);
    await plane.send(`/v1/seed/%zz?code=${code}`);
    await plane.send(SEEN, { method: 'POST', token: code });
    await plane.send('/v1/orders/next?wait=0', { token });
    await plane.send('/v1/orders/next?wait=nonsense', { token });
    await plane.send('/v1/attest/report', { body: { challengeId: challenge.challengeId, report: 'e30=', signature: 'c2VjcmV0' } });
    plane.desk.seeds.subject = async () => Promise.reject(new Error('the store is away'));
    expect(await plane.send(`${SEED}?code=${code}`)).toMatchObject({ status: 500, json: { code: 'internal' } });

    const logged = plane.logged();
    expect(logged).toContain('seed fetched');
    expect(logged).toContain('unknown install code');
    expect(logged).toContain('code=[redacted]');
    for (const secret of [code, token, challenge.nonce, 'c2VjcmV0']) expect(logged).not.toContain(secret);
  });
});
