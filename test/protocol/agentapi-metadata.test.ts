import { createMetadataApi } from '../../src/agentapi/metadata/metadata-api.js';
import { normalizeAddress } from '../../src/agentapi/sender.js';
import type { MetadataSubject } from '../../src/contracts/metadata.js';
import { MetalflowError } from '../../src/domain/errors.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { send, type Reply } from '../support/agent-api-server.js';

const subject = (name: string, address: string): MetadataSubject => ({ nodeName: name, instanceId: `${name}-1`, addresses: ['2001:db8::5', address] });
/** Loopback peers stand for the nodes that ask directly; forwarded addresses can be any. */
const NODES: Readonly<Record<string, MetadataSubject>> = {
  '127.0.0.5': subject('node-5', '10.0.0.5'),
  '127.0.0.6': subject('node-6', '10.0.0.6'),
  '10.0.0.5': subject('node-5', '10.0.0.5'),
  '10.0.0.6': subject('node-6', '10.0.0.6'),
};
const PROXY = '127.0.0.1';

let server: HttpServer;
afterEach(() => server.close());

async function ask(peer: string, { forwarded, url = '/2009-04-04/meta-data/hostname', trustedProxies = [PROXY], host = '127.0.0.1', directory }: { forwarded?: string; url?: string; trustedProxies?: string[]; host?: string; directory?: () => Promise<never> } = {}): Promise<Reply> {
  server = createMetadataApi({ directory: directory ?? (async (address) => (Object.hasOwn(NODES, address) ? NODES[address]! : null)), log: silentLogger(), trustedProxies });
  await server.listen({ port: 0, host });
  return send((server.server.address() as { port: number }).port, url, { localAddress: peer, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } });
}

describe('metadata by sender (M1)', () => {
  test.each<[string, string, Parameters<typeof ask>[1], string]>([
    ['a plain peer', '127.0.0.5', {}, 'node-5'],
    ['a peer with the forwarding header of no trusted proxy', '127.0.0.5', { forwarded: '10.0.0.6' }, 'node-5'],
    ['a peer with the header where no proxy is trusted', '127.0.0.5', { forwarded: '10.0.0.6', trustedProxies: [] }, 'node-5'],
    ['the trusted proxy for 10.0.0.6', PROXY, { forwarded: '10.0.0.6' }, 'node-6'],
    ['the right-most untrusted hop', PROXY, { forwarded: '6.6.6.6, 10.0.0.6' }, 'node-6'],
    ['the trusted proxy behind itself', PROXY, { forwarded: `10.0.0.6, ${PROXY}` }, 'node-6'],
    ['the trusted proxy for ::ffff:10.0.0.5', PROXY, { forwarded: '::ffff:10.0.0.5' }, 'node-5'],
    ['a peer shown as ::ffff:127.0.0.5', '127.0.0.5', { host: '::' }, 'node-5'],
    ['the trusted proxy shown as ::ffff:127.0.0.1', PROXY, { host: '::', forwarded: '10.0.0.6' }, 'node-6'],
  ])('M1 %s gets its own data', async (_, peer, options, name) => {
    expect(await ask(peer, options)).toMatchObject({ status: 200, text: name, headers: { 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8' } });
  });

  test.each([
    ['an unknown address', '127.0.0.99', undefined],
    ['an unknown address that claims to be forwarded', '127.0.0.99', '10.0.0.5'],
    ['an unknown address behind the trusted proxy', PROXY, '10.0.0.99'],
    ['the trusted proxy itself', PROXY, undefined],
    ['rubbish from the trusted proxy', PROXY, 'unknown'],
    ['a known address with a port from the trusted proxy', PROXY, '10.0.0.6:4711'],
    ['a prototype key from the trusted proxy', PROXY, '__proto__'],
  ])("M1 %s gets 404, and no other node's data", async (_, peer, forwarded) => {
    const reply = await ask(peer, { forwarded });
    expect(reply).toMatchObject({ status: 404, json: { code: 'node_not_found' } });
    expect(reply.text).not.toMatch(/node-[56]/);
  });

  test.each([
    ['/', 200, '2009-04-04\nlatest'],
    ['/latest/', 200, 'meta-data/'],
    ['/2009-04-04/meta-data', 200, 'hostname\ninstance-id\nlocal-hostname\nlocal-ipv4'],
    ['/2009-04-04/meta-data/', 200, 'hostname\ninstance-id\nlocal-hostname\nlocal-ipv4'],
    ['/2009-04-04/meta-data/instance-id', 200, 'node-5-1'],
    ['/latest/meta-data/local-hostname', 200, 'node-5'],
    ['/latest/meta-data/local-ipv4', 200, '10.0.0.5'],
  ])('%s answers %i', async (url, status, text) => {
    expect(await ask('127.0.0.5', { url })).toMatchObject({ status, text });
  });

  test.each(['/2009-04-04/user-data', '/latest/meta-data/constructor', '/latest/meta-data/public-keys', '/2008-02-01/meta-data/hostname'])('%s is not there', async (url) => {
    expect(await ask('127.0.0.5', { url })).toMatchObject({ status: 404, json: { code: 'route_not_found' } });
  });

  test('a store that is away is 503, not an unknown node', async () => {
    const directory = async (): Promise<never> => Promise.reject(new MetalflowError('store_unavailable', { why: 'gone' }));
    expect(await ask('127.0.0.5', { directory })).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  });
});

describe('addresses of senders (M1, S2)', () => {
  test.each([
    ['10.0.0.5', '10.0.0.5'], ['::ffff:10.0.0.5', '10.0.0.5'], ['::FFFF:10.0.0.5', '10.0.0.5'], ['::ffff:a00:5', '10.0.0.5'], ['fe80::1%eth0', 'fe80::1'], ['2001:DB8::1', '2001:db8::1'],
    ['10.0.0.5:80', null], ['010.0.0.5', null], ['host', null], ['', null],
  ])('%s is %s', (text, address) => {
    expect(normalizeAddress(text)).toBe(address);
  });
});
