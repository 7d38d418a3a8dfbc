import { createImdsTokens } from '../../src/agentapi/metadata/imds-token.js';
import { closeMetadata, openMetadata, PROXY, subjectOf, TWICE, uuidOf, type MetadataServer } from '../support/metadata-server.js';
import type { Reply } from '../support/agent-api-server.js';

afterEach(closeMetadata);

const TTL = 'x-aws-ec2-metadata-token-ttl-seconds';
const TOKEN = 'x-aws-ec2-metadata-token';
const HOSTNAME = '/latest/meta-data/hostname';

const put = (metadata: MetadataServer, peer: string, ttl: string | undefined, headers: Record<string, string> = {}): Promise<Reply> =>
  metadata.ask(peer, '/latest/api/token', { method: 'PUT', headers: { ...(ttl !== undefined && { [TTL]: ttl }), ...headers } });
const tokenOf = async (metadata: MetadataServer, peer: string, ttl = '60'): Promise<string> => (await put(metadata, peer, ttl)).text;
const withToken = (token: string): { headers: Record<string, string> } => ({ headers: { [TOKEN]: token } });

describe('PUT /latest/api/token', () => {
  test.each(['1', '60', '21600'])('a lifetime of %s seconds is given and said again', async (ttl) => {
    const metadata = await openMetadata();
    const reply = await put(metadata, '127.0.0.5', ttl);
    expect(reply).toMatchObject({ status: 200, headers: { [TTL]: ttl, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' } });
    expect(await metadata.ask('127.0.0.5', HOSTNAME, withToken(reply.text))).toMatchObject({ status: 200, text: 'node-5' });
  });

  test.each([undefined, '', '0', '-1', '21601', '99999999', 'abc', '1.5', '60, 60', '0x10', ' '])('a lifetime of %j is refused', async (ttl) => {
    expect(await put(await openMetadata(), '127.0.0.5', ttl)).toMatchObject({ status: 400, json: { code: 'metadata_ttl_invalid', details: { most: 21_600 } } });
  });

  test.each([['an unknown address', '127.0.0.99', 404, 'node_not_found'], ['an address of two devices', TWICE, 409, 'address_ambiguous']])('%s gets none', async (_, peer, status, code) => {
    expect(await put(await openMetadata(), peer, '60')).toMatchObject({ status, json: { code } });
  });

  test('what a stranger forwards gets none, and what a trusted proxy forwards does (IMDSv2 against open proxies)', async () => {
    const metadata = await openMetadata();
    expect(await put(metadata, '127.0.0.5', '60', { 'x-forwarded-for': '10.0.0.6' })).toMatchObject({ status: 403, json: { code: 'metadata_token_forwarded' } });
    const reply = await put(metadata, PROXY, '60', { 'x-forwarded-for': '10.0.0.6' });
    expect(await metadata.ask(PROXY, HOSTNAME, { headers: { [TOKEN]: reply.text, 'x-forwarded-for': '10.0.0.6' } })).toMatchObject({ status: 200, text: 'node-6' });
  });

  test('one sender gets a bounded number a minute', async () => {
    const metadata = await openMetadata({ limits: { tokens: 2 } });
    for (let turn = 0; turn < 2; turn++) expect(await put(metadata, '127.0.0.5', '60')).toMatchObject({ status: 200 });
    expect(await put(metadata, '127.0.0.5', '60')).toMatchObject({ status: 429 });
    metadata.clock.at += 60_000;
    expect(await put(metadata, '127.0.0.5', '60')).toMatchObject({ status: 200 });
  });
});

describe('a metadata token', () => {
  test("is good until its end, for its node and sender only, and says nothing of whose it is", async () => {
    const metadata = await openMetadata();
    const token = await tokenOf(metadata, '127.0.0.5');
    expect(token).not.toContain('node');
    metadata.clock.at += 59_000;
    expect(await metadata.ask('127.0.0.5', HOSTNAME, withToken(token))).toMatchObject({ status: 200 });
    expect(await metadata.ask('127.0.0.6', HOSTNAME, withToken(token))).toMatchObject({ status: 401, json: { code: 'metadata_token_wrong' } });
    metadata.clock.at += 1000;
    expect(await metadata.ask('127.0.0.5', HOSTNAME, withToken(token))).toMatchObject({ status: 401, json: { code: 'metadata_token_wrong' } });
  });

  test('ends when the address becomes that of another node', async () => {
    const metadata = await openMetadata();
    const token = await tokenOf(metadata, '127.0.0.5');
    metadata.nodes.set('127.0.0.5', subjectOf(6));
    expect(await metadata.ask('127.0.0.5', HOSTNAME, withToken(token))).toMatchObject({ status: 401 });
  });

  test('of another key is worth nothing: a restart asks for a new one', async () => {
    const token = await tokenOf(await openMetadata(), '127.0.0.5');
    expect(await (await openMetadata()).ask('127.0.0.5', HOSTNAME, withToken(token))).toMatchObject({ status: 401, json: { code: 'metadata_token_wrong' } });
  });

  test.each(['', 'x', 'a.b', '.'.repeat(50), `zzzzzzzzzz.${'A'.repeat(43)}`, `1.${'A'.repeat(44)}`, '__proto__'])('%j is none, and is refused even where none is needed', async (token) => {
    const metadata = await openMetadata();
    expect(await metadata.ask('127.0.0.5', HOSTNAME, withToken(token))).toMatchObject({ status: 401, json: { code: 'metadata_token_wrong' } });
  });

  test('whose end was moved is refused', () => {
    const tokens = createImdsTokens({ key: Buffer.alloc(32, 1), now: () => new Date(0) });
    const holder = { deviceId: '5', sender: '10.0.0.5' };
    const [end, mac] = tokens.issue(holder, 60).split('.');
    expect(() => tokens.verify(`${end}.${mac}`, holder)).not.toThrow();
    expect(() => tokens.verify(`${(parseInt(end!, 36) + 1).toString(36)}.${mac}`, holder)).toThrow(expect.objectContaining({ code: 'metadata_token_wrong' }) as Error);
  });
});

describe('where the site requires tokens', () => {
  test.each([HOSTNAME, '/metadata', '/latest/user-data', '/2009-04-04/', `/nocloud/${uuidOf(5)}/meta-data`])('an address alone gets 401 for %s, and with a token what it asks for', async (path) => {
    const metadata = await openMetadata({ tokenPolicy: 'required' });
    expect(await metadata.ask('127.0.0.5', path)).toMatchObject({ status: 401, json: { code: 'metadata_token_needed' } });
    expect(await metadata.ask('127.0.0.5', path, withToken(await tokenOf(metadata, '127.0.0.5')))).toMatchObject({ status: 200 });
  });

  test('the session token and the install code are enough by themselves', async () => {
    const metadata = await openMetadata({ tokenPolicy: 'required' });
    metadata.sessions.set('token-5', '5');
    metadata.codes.set('code-5', { deviceId: '5' });
    for (const token of ['token-5', 'code-5']) expect(await metadata.ask('127.0.0.5', '/latest/user-data', { token })).toMatchObject({ status: 200 });
  });
});
