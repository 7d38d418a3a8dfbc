import { normalizeAddress } from '../../src/agentapi/sender.js';
import { MetalflowError } from '../../src/domain/errors.js';
import { KEY, closeMetadata, macOf, openMetadata, PROXY, subjectOf, TWICE, uuidOf, type MetadataServer } from '../support/metadata-server.js';

afterEach(closeMetadata);

const HOSTNAME = '/2009-04-04/meta-data/hostname';
const forwarded = (value: string | undefined): { headers: Record<string, string> } => ({ headers: value === undefined ? {} : { 'x-forwarded-for': value } });

describe('metadata by sender (M1)', () => {
  test.each<[string, string, { by?: string; trusted?: string[]; host?: string }, string]>([
    ['a plain peer', '127.0.0.5', {}, 'node-5'],
    ['a peer with the forwarding header of no trusted proxy', '127.0.0.5', { by: '10.0.0.6' }, 'node-5'],
    ['a peer with the header where no proxy is trusted', '127.0.0.5', { by: '10.0.0.6', trusted: [] }, 'node-5'],
    ['the trusted proxy for 10.0.0.6', PROXY, { by: '10.0.0.6' }, 'node-6'],
    ['the right-most untrusted hop', PROXY, { by: '6.6.6.6, 10.0.0.6' }, 'node-6'],
    ['the trusted proxy behind itself', PROXY, { by: `10.0.0.6, ${PROXY}` }, 'node-6'],
    ['the trusted proxy for ::ffff:10.0.0.5', PROXY, { by: '::ffff:10.0.0.5' }, 'node-5'],
    ['a peer shown as ::ffff:127.0.0.5', '127.0.0.5', { host: '::' }, 'node-5'],
    ['the trusted proxy shown as ::ffff:127.0.0.1', PROXY, { host: '::', by: '10.0.0.6' }, 'node-6'],
  ])('M1 %s gets its own data', async (_, peer, { by, trusted, host }, name) => {
    const { ask } = await openMetadata({ ...(trusted && { trustedProxies: trusted }), ...(host && { host }) });
    expect(await ask(peer, HOSTNAME, forwarded(by))).toMatchObject({ status: 200, text: name, headers: { 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8' } });
    expect((await ask(peer, '/metadata', forwarded(by))).json).toMatchObject({ metadata: { instance: { hostname: name } } });
  });

  test.each([
    ['an unknown address', '127.0.0.99', undefined],
    ['an unknown address that claims to be forwarded', '127.0.0.99', '10.0.0.5'],
    ['an unknown address behind the trusted proxy', PROXY, '10.0.0.99'],
    ['the trusted proxy itself', PROXY, undefined],
    ['rubbish from the trusted proxy', PROXY, 'unknown'],
    ['a known address with a port from the trusted proxy', PROXY, '10.0.0.6:4711'],
    ['a prototype key from the trusted proxy', PROXY, '__proto__'],
  ])("M1 %s gets 404, and no other node's data", async (_, peer, by) => {
    const { ask } = await openMetadata();
    for (const path of [HOSTNAME, '/latest/', '/latest/user-data', '/metadata', `/nocloud/${uuidOf(5)}/user-data`]) {
      const reply = await ask(peer, path, forwarded(by));
      expect({ path, ...reply }).toMatchObject({ path, status: 404, json: { code: 'node_not_found' } });
      expect(reply.text).not.toMatch(/node-[56]/);
    }
  });

  test('M1 an address that two devices declare is refused, not guessed, and names nobody to the asker', async () => {
    const { ask, logged } = await openMetadata();
    for (const path of [HOSTNAME, '/metadata', '/latest/user-data']) {
      const reply = await ask(TWICE, path);
      expect(reply).toMatchObject({ status: 409, json: { code: 'address_ambiguous', details: { address: TWICE } } });
      expect(reply.text).not.toMatch(/node-[56]/);
    }
    expect(logged()).toContain('several devices declare one address');
    expect(logged()).toContain('node-6');
  });

  test('M1 the session token says who asks where the address is unknown, shared, or another node\'s', async () => {
    const { ask, sessions } = await openMetadata();
    sessions.set('token-6', '6');
    for (const peer of ['127.0.0.99', TWICE, '127.0.0.5']) expect(await ask(peer, HOSTNAME, { token: 'token-6' })).toMatchObject({ status: 200, text: 'node-6' });
  });

  test('M1 a wrong token is refused, also where the address alone would do', async () => {
    const { ask } = await openMetadata();
    expect(await ask('127.0.0.5', HOSTNAME, { token: 'nobody' })).toMatchObject({ status: 401, json: { code: 'token_unknown' } });
  });

  test('a store that is away is 503, not an unknown node', async () => {
    const gone = async (): Promise<never> => Promise.reject(new MetalflowError('store_unavailable', { why: 'gone' }));
    const { ask } = await openMetadata({ directory: { byAddress: gone, byDevice: gone } });
    expect(await ask('127.0.0.5', HOSTNAME)).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  });
});

describe("EC2's tree", () => {
  const full = subjectOf(5, {
    addresses: ['10.0.0.5', '203.0.113.5', '2001:db8::5'], tags: ['gpu', 'rack-7'], sshKeys: [KEY, KEY.replace('anna@example', 'two words'), KEY],
    interfaces: [
      { name: 'eth0', mac: macOf(5), addresses: ['10.0.0.5/22', '10.0.0.50/22', '2001:db8::5/64'] },
      { name: 'eth1', mac: macOf(0x15), addresses: ['203.0.113.5/28'] },
    ],
    payload: 'talos', imageSha256: 'a'.repeat(64),
  });
  const TOP = 'facility\nhostname\ninstance-id\nlocal-hostname\nlocal-ipv4\nmac\nnetwork/\noperating-system/\nplacement/\nplan\npublic-ipv4\npublic-ipv6\npublic-keys/\ntags';
  const AT = '/latest/meta-data/network/interfaces/macs';

  test.each<[path: string, text: string]>([
    ['/', '2009-04-04\nlatest'],
    ['/latest', 'dynamic/\nmeta-data/\nuser-data'],
    ['/2009-04-04', 'dynamic/\nmeta-data/\nuser-data'],
    ['/latest/dynamic/instance-identity', 'document'],
    ['/latest/dynamic/instance-identity/document', JSON.stringify({ version: '2017-09-30', instanceId: `${uuidOf(5)}-3`, availabilityZone: 'ams1', region: 'ams1', privateIp: '10.0.0.5' }, null, 2)],
    ['/latest/meta-data', TOP],
    ['/latest/meta-data/instance-id', `${uuidOf(5)}-3`],
    ['/latest/meta-data/hostname', 'node-5'],
    ['/latest/meta-data/local-hostname', 'node-5'],
    ['/latest/meta-data/local-ipv4', '10.0.0.5'],
    ['/latest/meta-data/public-ipv4', '203.0.113.5'],
    ['/latest/meta-data/public-ipv6', '2001:db8::5'],
    ['/latest/meta-data/mac', macOf(5)],
    ['/latest/meta-data/network', 'interfaces/'],
    ['/latest/meta-data/network/interfaces', 'macs/'],
    [AT, `${macOf(5)}/\n${macOf(0x15)}/`],
    [`${AT}/${macOf(5)}`, 'device-number\nipv6s\nlocal-hostname\nlocal-ipv4s\nmac\nsubnet-ipv4-cidr-block'],
    [`${AT}/${encodeURIComponent(macOf(5))}/mac`, macOf(5)],
    [`${AT}/${macOf(5)}/local-ipv4s`, '10.0.0.5\n10.0.0.50'],
    [`${AT}/${macOf(5)}/ipv6s`, '2001:db8::5'],
    [`${AT}/${macOf(5)}/subnet-ipv4-cidr-block`, '10.0.0.0/22'],
    [`${AT}/${macOf(0x15)}/device-number`, '1'],
    [`${AT}/${macOf(0x15)}/public-ipv4s`, '203.0.113.5'],
    [`${AT}/${macOf(0x15)}/subnet-ipv4-cidr-block`, '203.0.113.0/28'],
    ['/latest/meta-data/public-keys', '0=anna@example\n1=key-1\n2=key-2'],
    ['/latest/meta-data/public-keys/0', 'openssh-key'],
    ['/latest/meta-data/public-keys/0/openssh-key', KEY],
    ['/latest/meta-data/placement', 'availability-zone\nregion'],
    ['/latest/meta-data/placement/availability-zone', 'ams1'],
    ['/latest/meta-data/tags', 'gpu\nrack-7'],
    ['/latest/meta-data/operating-system', 'distro\nimage_tag\nlicense_activation/\nslug'],
    ['/latest/meta-data/operating-system/slug', 'worker'],
    ['/latest/meta-data/operating-system/distro', 'talos'],
    ['/latest/meta-data/operating-system/image_tag', `sha256:${'a'.repeat(64)}`],
    ['/latest/meta-data/plan', 'worker'],
    ['/latest/meta-data/facility', 'ams1'],
    // Known to Tootles, and without a value here: an empty text, not 404.
    ['/latest/meta-data/operating-system/version', ''],
    ['/latest/meta-data/operating-system/license_activation/state', ''],
    ['/latest/meta-data/iqn', ''],
    ['/latest/user-data', '#cloud-config\n'],
  ])('%s answers %j, with and without a slash at its end, in both versions', async (path, text) => {
    const { ask } = await openMetadata({ subjects: [full] });
    const spellings = new Set([path, `${path.replace(/\/$/, '')}/`, path.replace('/latest', '/2009-04-04')]);
    for (const spelling of spellings) expect({ spelling, ...(await ask('127.0.0.5', spelling)) }).toMatchObject({ spelling, status: 200, text, headers: { 'content-type': 'text/plain; charset=utf-8' } });
  });

  test('a node of which little is known lists what is known, and public-keys are an empty list', async () => {
    const { ask } = await openMetadata({ subjects: [subjectOf(5, { addresses: [], primary: [], interfaces: [], macs: [], nodeClass: '', payload: '' })] });
    expect((await ask('127.0.0.5', '/latest/meta-data/')).text).toBe('facility\nhostname\ninstance-id\nlocal-hostname\noperating-system/\nplacement/\npublic-keys/');
    for (const name of ['public-keys', 'local-ipv4', 'public-ipv4', 'mac']) expect(await ask('127.0.0.5', `/latest/meta-data/${name}`)).toMatchObject({ status: 200, text: '' });
  });

  test.each([
    '/latest/meta-data/constructor', '/latest/meta-data/__proto__/x', '/latest/meta-data/hostname/x', '/latest/meta-data/public-keys/3/openssh-key', '/latest/meta-data/%2e%2e/%2e%2e/etc/passwd',
    '/latest/user-data/x', '/latest/vendor-data', '/latest/network-config', '/latest/dynamic/fws', '/2021-03-23/meta-data/instance-id', '/2008-02-01/meta-data/hostname', '/latest/api/token',
  ])('%s is not there', async (path) => {
    const { ask } = await openMetadata();
    expect(await ask('127.0.0.5', path)).toMatchObject({ status: 404, json: { code: 'route_not_found' } });
  });
});

test("GET /metadata has Hegel's shape, and no disk that a client would partition", async () => {
  const { ask } = await openMetadata({ subjects: [subjectOf(5, { tags: ['gpu'], sshKeys: [KEY], interfaces: [{ name: 'eth0', mac: macOf(5), addresses: ['10.0.0.5/22', '2001:db8::5/64'] }] })] });
  expect((await ask('127.0.0.5', '/metadata')).json).toEqual({
    metadata: {
      instance: {
        id: `${uuidOf(5)}-3`, hostname: 'node-5', tags: ['gpu'], ssh_keys: [KEY],
        operating_system: { slug: 'worker', distro: '', version: '', image_tag: '' },
        ips: [
          { address: '10.0.0.5', netmask: '255.255.252.0', family: 4, public: false, management: true },
          { address: '2001:db8::5', netmask: '', family: 6, public: true, management: false },
        ],
        storage: { disks: [], raid: [], filesystems: [] },
      },
      facility: { facility_code: 'ams1', plan_slug: 'worker' },
    },
  });
});

describe('bad input', () => {
  let metadata: MetadataServer;
  beforeEach(async () => {
    metadata = await openMetadata();
  });
  const stillAnswers = async (): Promise<void> => expect(await metadata.ask('127.0.0.5', HOSTNAME)).toMatchObject({ status: 200, text: 'node-5' });

  test.each<[string, string, number, string]>([
    ['a badly encoded path', '/latest/meta-data/%zz', 400, 'request_malformed'],
    ['half an encoded character', '/latest/meta-data/%c3', 400, 'request_malformed'],
    ['a path without end', `/latest/meta-data/${'a'.repeat(3000)}`, 400, 'request_malformed'],
    ['a long name', `/latest/meta-data/${'a'.repeat(1500)}`, 404, 'route_not_found'],
    ['a NUL', '/latest/meta-data/host%00name', 404, 'route_not_found'],
    ['an encoded slash', '/latest/meta-data%2fhostname%2f..', 404, 'route_not_found'],
    ['many slashes around a name that is not there', '/latest///nothing//', 404, 'route_not_found'],
    ['a NoCloud id that is no UUID', '/nocloud/..%2f..%2fetc/meta-data', 404, 'node_not_found'],
    ['a NoCloud document that is none', `/nocloud/${uuidOf(5)}/document.json`, 404, 'route_not_found'],
    ['a code twice', '/latest/user-data?code=a&code=b', 400, 'body_invalid'],
    ['an endless code', `/latest/user-data?code=${'a'.repeat(600)}`, 400, 'body_invalid'],
  ])('%s is answered with one clear error', async (_, path, status, code) => {
    expect(await metadata.ask('127.0.0.5', path)).toMatchObject({ status, json: { code, hint: expect.any(String) as string } });
    await stillAnswers();
  });

  test.each([
    ['POST', HOSTNAME, 'GET'], ['PUT', '/latest/user-data', 'GET'], ['DELETE', `/nocloud/${uuidOf(5)}/user-data`, 'GET'], ['PATCH', '/metadata', 'GET'], ['OPTIONS', '/', 'GET'],
    ['POST', '/latest/api/token', 'PUT'], ['DELETE', '/latest/api/token?x=1', 'PUT'],
  ])('%s %s is refused, and told that %s is the way', async (method, path, allowed) => {
    expect(await metadata.ask('127.0.0.5', path, { method })).toMatchObject({ status: 405, headers: { allow: allowed }, json: { code: 'method_not_allowed', details: { method, allowed } } });
    await stillAnswers();
  });

  test('HEAD is refused before it could redeem a code', async () => {
    metadata.codes.set('code-5', { deviceId: '5' });
    expect(await metadata.ask('127.0.0.5', '/latest/user-data?code=code-5', { method: 'HEAD' })).toMatchObject({ status: 405, text: '' });
  });

  test('a body is refused by its size, whatever its type', async () => {
    expect(await metadata.ask('127.0.0.5', '/latest/api/token', { method: 'PUT', raw: 'x'.repeat(5000), headers: { 'content-type': 'text/x-odd', 'x-aws-ec2-metadata-token-ttl-seconds': '60' } })).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
    await stillAnswers();
  });

  test('headers without end are refused', async () => {
    expect(await metadata.ask('127.0.0.5', HOSTNAME, { headers: { 'x-aws-ec2-metadata-token': 'a'.repeat(40_000) } })).toMatchObject({ status: 431, json: { code: 'headers_too_large' } });
    await stillAnswers();
  });

  test('a sender that asks without end is stopped, and the others are not', async () => {
    const { ask } = await openMetadata({ limits: { requests: 3 } });
    for (let turn = 0; turn < 3; turn++) expect(await ask('127.0.0.5', HOSTNAME)).toMatchObject({ status: 200 });
    expect(await ask('127.0.0.5', HOSTNAME)).toMatchObject({ status: 429, json: { code: 'rate_limited' } });
    expect(await ask('127.0.0.6', HOSTNAME)).toMatchObject({ status: 200 });
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
