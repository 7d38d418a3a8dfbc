import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import type { MetadataSubject } from '../../src/contracts/metadata.js';
import { createSeedRenderer } from '../../src/templates/seeds/index.js';
import { closeAgentPlanes, declareWithRun, openAgentPlane, testNode } from '../support/agent-api-server.js';
import { AGENT_URL, closeMetadata, KEY, macOf, openMetadata, subjectOf, uuidOf, type MetadataServer } from '../support/metadata-server.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'metalflow-metadata-'));
});
afterEach(async () => {
  await closeMetadata();
  await rm(folder, { recursive: true, force: true });
});

async function put(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}
const open = (subject: Partial<MetadataSubject> = {}): Promise<MetadataServer> =>
  openMetadata({ seedsFolder: join(folder, 'seeds'), secretsFolder: join(folder, 'secrets'), subjects: [subjectOf(5, subject), subjectOf(6)] });
const at = (number: number, document = ''): string => `/nocloud/${uuidOf(number)}/${document}`;
const yaml11 = (text: string): Record<string, unknown> => parse(text, { version: '1.1' }) as Record<string, unknown>;

describe('NoCloud over HTTP (M3)', () => {
  test('M3 meta-data and user-data are always there, the others are empty where there are none', async () => {
    const { ask } = await open();
    expect((await ask('127.0.0.5', at(5))).text).toBe('meta-data\nuser-data');
    expect(await ask('127.0.0.5', at(5, 'user-data'))).toMatchObject({ status: 200, text: '#cloud-config\n' });
    expect(yaml11((await ask('127.0.0.5', at(5, 'meta-data'))).text)).toEqual({ 'instance-id': `${uuidOf(5)}-3`, 'local-hostname': 'node-5' });
    // For a 404 cloud-init 22.4 asks eleven times, a second apart.
    for (const document of ['vendor-data', 'network-config']) expect(await ask('127.0.0.5', at(5, document))).toMatchObject({ status: 200, text: '' });
  });

  test.each(['node: 1 #x', 'yes', '007', 'käse'])('M3 the name %s survives as a string', async (nodeName) => {
    const { ask } = await open({ nodeName });
    expect(yaml11((await ask('127.0.0.5', at(5, 'meta-data'))).text)).toEqual({ 'instance-id': `${uuidOf(5)}-3`, 'local-hostname': nodeName });
  });

  test('M3 the instance-id changes with a reprovision, and stays for the same run', async () => {
    const metadata = await open();
    const read = async (): Promise<unknown> => yaml11((await metadata.ask('127.0.0.5', at(5, 'meta-data'))).text)['instance-id'];
    const first = await read();
    expect(await read()).toBe(first);
    metadata.nodes.set('127.0.0.5', subjectOf(5, { run: 4, instanceId: `${uuidOf(5)}-4` }));
    expect(await read()).toBe(`${uuidOf(5)}-4`);
  });

  test('M3 the bytes of user-data come through unchanged: BOM, CRLF, no header', async () => {
    const text = '\uFEFFno header\r\n\ttab  two blanks \r\nkäse';
    await put({ 'seeds/cloud-init-nocloud/user-data': text });
    const { ask } = await open();
    for (const path of [at(5, 'user-data'), '/latest/user-data', '/2009-04-04/user-data/']) expect((await ask('127.0.0.5', path)).text).toBe(text);
  });

  test('M3 a seedfrom that a seed emits ends in a slash', async () => {
    await put({ 'seeds/cloud-init-nocloud/meta-data': 'instance-id: "{{ instanceId }}"\nseedfrom: {{ seedFrom }}\n' });
    const { ask } = await open();
    expect(yaml11((await ask('127.0.0.5', at(5, 'meta-data'))).text)['seedfrom']).toBe(`http://metadata.example:50061/nocloud/${uuidOf(5)}/`);
  });

  test('the documents are the very files that a write-seed action would place', async () => {
    await put({ 'seeds/cloud-init-nocloud/user-data': '#cloud-config\nhostname: {{ node.name }}\n', 'seeds/cloud-init-nocloud/vendor-data': '#cloud-config\n{}\n', 'seeds/cloud-init-nocloud/network-config': 'version: 2\n' });
    const { ask } = await open({ sshKeys: [KEY] });
    const files = await createSeedRenderer({ folder: join(folder, 'seeds'), agentUrl: AGENT_URL }).files(subjectOf(5, { sshKeys: [KEY] }), 'nocloud', AGENT_URL);
    expect(files.map(({ path }) => path)).toEqual(['meta-data', 'user-data', 'vendor-data', 'network-config']);
    for (const { path, content } of files) expect((await ask('127.0.0.5', at(5, path))).text).toBe(content);
    expect((await ask('127.0.0.5', '/latest/')).text).toBe('dynamic/\nmeta-data/\nuser-data\nvendor-data\nnetwork-config');
    expect(yaml11((await ask('127.0.0.5', at(5, 'meta-data'))).text)['public-keys']).toEqual([KEY]);
  });

  test('the UUID is read in any spelling, since firmware has its own', async () => {
    const { ask } = await open();
    expect(await ask('127.0.0.5', `/nocloud/${uuidOf(5).toUpperCase()}/meta-data`)).toMatchObject({ status: 200 });
  });

  test("another node's documents are as if they were not there: by address, by token, by code", async () => {
    const metadata = await open();
    metadata.sessions.set('token-5', '5');
    metadata.codes.set('code-5', { deviceId: '5' });
    for (const sent of [{}, { token: 'token-5' }]) expect(await metadata.ask('127.0.0.5', at(6, 'user-data'), sent)).toMatchObject({ status: 404, json: { code: 'node_not_found' } });
    expect(await metadata.ask('127.0.0.5', at(6, 'user-data?code=code-5'))).toMatchObject({ status: 401, json: { code: 'code_unknown' } });
  });

  test('a seed that cannot be rendered is one clear error, and the node still learns its name', async () => {
    await put({ 'seeds/cloud-init-nocloud/user-data': '{{ node.wish }}' });
    const { ask } = await open();
    expect(await ask('127.0.0.5', at(5, 'user-data'))).toMatchObject({ status: 422, json: { code: 'seed_invalid', message: expect.stringContaining('user-data:1: there is no fact node.wish') as string } });
    expect(await ask('127.0.0.5', '/latest/meta-data/hostname')).toMatchObject({ status: 200 });
  });
});

describe('user-data that is a secret', () => {
  const SECRET = '#cloud-config\npassword: hunter2\n';
  const secret = { userData: 'secret:web' };
  beforeEach(() => put({ 'secrets/user-data/web': SECRET, 'secrets/bmc-amt.json': '{"password":"bmc"}' }));

  test('is never shown to an address alone, nor listed away, and the rest is', async () => {
    const { ask, logged } = await open(secret);
    for (const path of ['/latest/user-data', '/2009-04-04/user-data', at(5, 'user-data')]) {
      const reply = await ask('127.0.0.5', path);
      expect(reply).toMatchObject({ status: 401, json: { code: 'credential_needed', details: { document: 'user-data' } } });
      expect(reply.text).not.toContain('hunter2');
    }
    expect((await ask('127.0.0.5', at(5))).text).toBe('meta-data\nuser-data');
    expect(await ask('127.0.0.5', at(5, 'meta-data'))).toMatchObject({ status: 200 });
    expect(JSON.stringify(await ask('127.0.0.5', '/metadata'))).not.toContain('hunter2');
    expect(logged()).not.toContain('hunter2');
  });

  test('an IMDSv2 token is no more than the address', async () => {
    const { ask } = await open(secret);
    const token = (await ask('127.0.0.5', '/latest/api/token', { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } })).text;
    expect(await ask('127.0.0.5', '/latest/user-data', { headers: { 'x-aws-ec2-metadata-token': token } })).toMatchObject({ status: 401, json: { code: 'credential_needed' } });
  });

  test('is shown byte for byte to the session token and to the install code, in the header or the URL', async () => {
    const metadata = await open(secret);
    metadata.sessions.set('token-5', '5');
    metadata.codes.set('code-5', { deviceId: '5' });
    for (const token of ['token-5', 'code-5']) for (const path of ['/latest/user-data', at(5, 'user-data')]) expect(await metadata.ask('127.0.0.5', path, { token })).toMatchObject({ status: 200, text: SECRET });
    for (const path of ['/latest/user-data?code=code-5', at(5, 'user-data?code=code-5')]) expect(await metadata.ask('127.0.0.5', path)).toMatchObject({ status: 200, text: SECRET });
    for (const word of ['hunter2', 'token-5', 'code-5']) expect(metadata.logged()).not.toContain(word);
  });

  test.each<[string, number, string]>([['wrong', 401, 'code_unknown'], ['spent', 410, 'code_spent'], ['of-node-6', 401, 'code_unknown']])('a code that is %s gets %i %s, and no log shows it', async (code, status, error) => {
    const metadata = await open(secret);
    metadata.codes.set('spent', { deviceId: '5', spent: true }).set('of-node-6', { deviceId: '6' });
    for (const path of [`/latest/user-data?code=${code}`, at(5, `user-data?code=${code}`)]) expect(await metadata.ask('127.0.0.5', path)).toMatchObject({ status, json: { code: error } });
    expect(metadata.logged()).not.toContain(`=${code}`);
  });

  test('guesses are few', async () => {
    const metadata = await openMetadata({ limits: { failures: 2 }, subjects: [subjectOf(5)] });
    for (let turn = 0; turn < 2; turn++) expect(await metadata.ask('127.0.0.5', '/latest/user-data', { token: 'guess' })).toMatchObject({ status: 401 });
    metadata.sessions.set('token-5', '5');
    expect(await metadata.ask('127.0.0.5', '/latest/user-data', { token: 'token-5' })).toMatchObject({ status: 429 });
    expect(await metadata.ask('127.0.0.5', '/latest/user-data')).toMatchObject({ status: 200 });
  });

  test.each<[string, string | Buffer | null, RegExp]>([
    ['secret:../bmc-amt.json', null, /is no secret:<name>/],
    ['secret:..', null, /is no secret:<name>/],
    ['secret:bmc-amt.json', null, /is not there: no file user-data\/bmc-amt.json in the secrets folder/],
    ['secret:missing', null, /is not there/],
    ['secret:away', null, /leads out of the secrets folder/],
    ['secret:folder', null, /is no file/],
    ['secret:bytes', Buffer.from([0xff, 0xfe, 0x00]), /is not UTF-8/],
    ['secret:large', 'x'.repeat(200_001), /is no file of at most 200000 bytes/],
    ['web', null, /is no secret:<name>/],
  ])('%s is refused with its reason, and nothing of any file is in it', async (userData, content, what) => {
    if (content !== null) await put({ [`secrets/user-data/${userData.split(':')[1]}`]: content });
    await put({ 'secrets/user-data/folder/x': '' });
    await symlink(join(folder, 'secrets', 'bmc-amt.json'), join(folder, 'secrets', 'user-data', 'away'));
    const metadata = await open({ userData });
    metadata.sessions.set('token-5', '5');
    const reply = await metadata.ask('127.0.0.5', '/latest/user-data', { token: 'token-5' });
    expect(reply).toMatchObject({ status: 422, json: { code: 'seed_invalid', message: expect.stringMatching(what) as string } });
    expect(reply.text).not.toContain('bmc"');
  });

  test('a mounted secret, which is a link within the folder, is read, and read anew when it changes', async () => {
    await put({ 'secrets/user-data/..data/web2': 'first' });
    await symlink(join('..data', 'web2'), join(folder, 'secrets', 'user-data', 'web2'));
    const metadata = await open({ userData: 'secret:web2' });
    metadata.sessions.set('token-5', '5');
    expect((await metadata.ask('127.0.0.5', '/latest/user-data', { token: 'token-5' })).text).toBe('first');
    await put({ 'secrets/user-data/..data/web2': 'second' });
    expect((await metadata.ask('127.0.0.5', '/latest/user-data', { token: 'token-5' })).text).toBe('second');
  });
});

describe('vendor-data that phones home', () => {
  test('holds the install code for whoever presents it, and is refused to an address and to a session', async () => {
    const metadata = await open({ phoneHome: true });
    metadata.sessions.set('token-5', '5');
    metadata.codes.set('code-5', { deviceId: '5' });
    expect(await metadata.ask('127.0.0.5', at(5, 'vendor-data'))).toMatchObject({ status: 401, json: { code: 'credential_needed' } });
    expect(await metadata.ask('127.0.0.5', at(5, 'vendor-data'), { token: 'token-5' })).toMatchObject({ status: 403, json: { code: 'install_code_needed' } });
    const served = await metadata.ask('127.0.0.5', at(5, 'vendor-data?code=code-5'));
    expect(yaml11(served.text)).toMatchObject({ phone_home: { url: `${AGENT_URL}/v1/seen/${uuidOf(5)}?code=code-5` } });
  });
});

describe('NoCloud on the agent plane, which has TLS', () => {
  afterEach(closeAgentPlanes);

  test('serves the same documents to the same node, and the secret ones to its install code', async () => {
    await put({ 'secrets/user-data/web': '#cloud-config\npassword: hunter2\n' });
    const node = testNode(5);
    const subject = subjectOf(5, { systemUuid: node.systemUuid, userData: 'secret:web' });
    const plane = await openAgentPlane({
      renderer: createSeedRenderer({ agentUrl: AGENT_URL, secretsFolder: join(folder, 'secrets') }), limits: { documents: 5 }, now: () => new Date('2026-11-30T10:00:00Z'),
      metadata: { tokenPolicy: 'optional', directory: { byAddress: async (address) => (address === '127.0.0.5' ? { kind: 'found', subject } : { kind: 'unknown' }), byDevice: async () => subject } },
    });
    declareWithRun(plane.desk, node);
    const { installCode } = await plane.admit(node);
    const path = `/nocloud/${node.systemUuid}`;
    expect((await plane.send(`${path}/meta-data`, { localAddress: '127.0.0.5' })).text).toContain(subject.instanceId);
    expect(await plane.send(`${path}/user-data`, { localAddress: '127.0.0.5' })).toMatchObject({ status: 401, json: { code: 'credential_needed' } });
    expect(await plane.send(`${path}/meta-data`)).toMatchObject({ status: 404, json: { code: 'node_not_found' } });
    expect(await plane.send(`${path}/user-data?code=${installCode}`)).toMatchObject({ status: 200, text: expect.stringContaining('hunter2') as string });
    for (let turn = 0; turn < 3; turn++) expect(await plane.send(`${path}/meta-data`, { localAddress: '127.0.0.5' })).toMatchObject({ status: 200 });
    expect(await plane.send(`${path}/meta-data`, { localAddress: '127.0.0.5' })).toMatchObject({ status: 429 });
  });

  test('is not there without a directory of nodes', async () => {
    expect(await (await openAgentPlane()).send(`/nocloud/${uuidOf(5)}/meta-data`)).toMatchObject({ status: 404, json: { code: 'route_not_found' } });
  });
});

describe('network-config', () => {
  const interfaces = [
    { name: 'eno1', mac: macOf(5), addresses: ['10.0.0.5/24', '2001:db8::5/64'] },
    { name: 'Ethernet 1/2', mac: macOf(0x15), addresses: ['192.0.2.5/28'] },
    { name: 'eno3', mac: macOf(0x25), addresses: [] },
  ];
  const stated = (gateways: string[], more: { nameservers?: string[]; search?: string[] } = {}): Partial<MetadataSubject> => ({ interfaces, network: { interfaces, statement: { gateways, nameservers: [], search: [], ...more } } });
  const read = async (subject: Partial<MetadataSubject>): Promise<unknown> => yaml11((await (await open(subject)).ask('127.0.0.5', '/latest/network-config')).text);

  test('is version 2 with the addresses of NetBox, and the routes that lie in their networks', async () => {
    expect(await read(stated(['10.0.0.1', '192.0.2.1', '198.51.100.1', '2001:db8::1'], { nameservers: ['10.0.0.53'], search: ['example.org'] }))).toEqual({
      version: 2,
      ethernets: {
        eno1: {
          match: { macaddress: macOf(5) }, 'set-name': 'eno1', addresses: ['10.0.0.5/24', '2001:db8::5/64'],
          routes: [{ to: '0.0.0.0/0', via: '10.0.0.1' }, { to: '::/0', via: '2001:db8::1' }], nameservers: { addresses: ['10.0.0.53'], search: ['example.org'] },
        },
        // A name that Linux could not have is given to nobody.
        nic1: { match: { macaddress: macOf(0x15) }, addresses: ['192.0.2.5/28'] },
      },
    });
  });

  test('an empty list of gateways says that there is none', async () => {
    expect(await read(stated([]))).toMatchObject({ ethernets: { eno1: { addresses: ['10.0.0.5/24', '2001:db8::5/64'] } } });
    expect(JSON.stringify(await read(stated([])))).not.toContain('routes');
  });

  test('is not made up where the site states no network: the way out is not known', async () => {
    const { ask } = await open({ interfaces, network: null });
    expect(await ask('127.0.0.5', '/latest/network-config')).toMatchObject({ status: 404 });
  });

  test("the site's own file stands before it", async () => {
    await put({ 'seeds/cloud-init-nocloud/network-config': 'version: 2\nethernets: {}\n' });
    expect(await read(stated(['10.0.0.1']))).toEqual({ version: 2, ethernets: {} });
  });
});
