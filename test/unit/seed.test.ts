import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { FleetSeed, INSTALL_CODE_MARK } from '../../src/contracts/agent-api.js';
import type { SeedSubject } from '../../src/contracts/agent-desk.js';
import { SeedFile } from '../../src/contracts/order.js';
import { createSeedRenderer } from '../../src/templates/seeds/index.js';

const AGENT_URL = 'https://agent.example:42114/';
const UUID = '4c4c4544-0042-3510-8052-b4c04f4a4c31';
const subject: SeedSubject = {
  deviceId: '7', nodeName: 'node-7', systemUuid: UUID, run: 3, instanceId: `${UUID}-3`, site: 'ams1', nodeClass: 'worker', payload: 'cloud-init-nocloud',
  seed: null, phoneHome: false, addresses: ['10.0.0.5'], macs: ['02:01:48:aa:bb:0c'],
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'metalflow-seeds-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function site(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

const render = async (changes: Partial<SeedSubject> = {}, options: { folder?: string } = { folder }): Promise<Record<string, string>> => {
  const files = await createSeedRenderer({ ...options, agentUrl: AGENT_URL }).files({ ...subject, ...changes }, 'nocloud', AGENT_URL);
  for (const file of files) expect(SeedFile.parse(file).mode).toBe(0o600);
  return Object.fromEntries(files.map(({ path, content }) => [path, content]));
};
/** As PyYAML would: cloud-init reads YAML 1.1. */
const yaml11 = (text: string): Record<string, unknown> => parse(text, { version: '1.1' }) as Record<string, unknown>;
const refused = (what: RegExp): object => ({ code: 'seed_invalid', message: expect.stringMatching(what) as string });

describe('the built-in seeds', () => {
  test.each(['talos', 'nixos-image', 'alpine-image'])('a %s node is served one JSON document without a secret', async (payload) => {
    const { contentType, body } = await createSeedRenderer({ agentUrl: AGENT_URL }).document({ ...subject, payload });
    expect(contentType).toBe('application/json; charset=utf-8');
    expect(JSON.parse(body)).toEqual({
      version: 1,
      node: { name: 'node-7', uuid: UUID, site: 'ams1', class: 'worker', addresses: ['10.0.0.5'], macs: ['02:01:48:aa:bb:0c'] },
      instanceId: `${UUID}-3`,
      run: 3,
      payload,
      seenUrl: `https://agent.example:42114/v1/seen/${UUID}`,
    });
    expect(body).not.toContain(INSTALL_CODE_MARK);
  });

  test('fleet-seed.json is whole JSON, readable by root only, with the mark in the place of the code (M3)', async () => {
    const files = await createSeedRenderer({ agentUrl: AGENT_URL }).files(subject, 'efi', 'http://10.0.0.1:42114');
    expect(files.map(({ path, mode }) => ({ path, mode }))).toEqual([{ path: 'fleet-seed.json', mode: 0o600 }]);
    expect(FleetSeed.parse(JSON.parse(files[0]!.content))).toEqual({
      version: 1, systemUuid: UUID, seedUrl: `http://10.0.0.1:42114/v1/seed/${UUID}`, seenUrl: `http://10.0.0.1:42114/v1/seen/${UUID}`,
      installCode: INSTALL_CODE_MARK, nodeName: 'node-7', instanceId: `${UUID}-3`,
    });
  });

  test('a NoCloud tree has meta-data and user-data even when the site gives neither (M3)', async () => {
    const files = await render({}, {});
    expect(Object.keys(files)).toEqual(['meta-data', 'user-data']);
    expect(files['user-data']).toBe('#cloud-config\n');
    expect(yaml11(files['meta-data']!)).toEqual({ 'instance-id': `${UUID}-3`, 'local-hostname': 'node-7' });
  });

  test.each(['node: 1 #x', 'yes', '1:30', '007', '0x1F', 'null', '~', '1e3', '2026-11-30', '"quoted"', 'back\\slash', '- dash', 'käse', '@INSTALL'])('the name %s survives as a string (M3)', async (nodeName) => {
    expect(yaml11((await render({ nodeName }, {}))['meta-data']!)['local-hostname']).toBe(nodeName);
  });

  test('the instance-id changes with a reprovision and stays for a retried action (M3)', async () => {
    const first = await render();
    expect(await render()).toEqual(first);
    const again = await render({ run: 4, instanceId: `${UUID}-4` });
    expect(yaml11(again['meta-data']!)['instance-id']).not.toBe(yaml11(first['meta-data']!)['instance-id']);
  });

  test('a class that phones home gets vendor-data with the code by its mark', async () => {
    const vendorData = (await render({ phoneHome: true }, {}))['vendor-data']!;
    expect(vendorData.startsWith('#cloud-config\n')).toBe(true);
    expect(yaml11(vendorData)).toEqual({ phone_home: { url: `https://agent.example:42114/v1/seen/${UUID}?code=${INSTALL_CODE_MARK}`, post: ['instance_id'], tries: 10 } });
  });
});

describe("a site's own seed", () => {
  const UNTOUCHED = [
    ['text without #cloud-config', 'hello: there\n'],
    ['CRLF', '#cloud-config\r\nruncmd:\r\n  - [ls]\r\n'],
    ['odd indents and no final newline', '#cloud-config\n\ta:   b\n      - c   \n\n\n  #x'],
    ['a byte order mark', '\ufeff#cloud-config\n'],
    ['a shell script', '#!/bin/sh\necho "${HOME}" }} $(( 1 + 2 ))\n'],
  ] as const;
  test.each(UNTOUCHED)('user-data with %s comes out byte for byte (M3)', async (_, text) => {
    await site({ 'cloud-init-nocloud/user-data': text });
    expect(Buffer.from((await render())['user-data']!)).toEqual(Buffer.from(text));
  });

  test('marks are filled from the closed set of facts', async () => {
    await site({ 'cloud-init-nocloud/user-data': '{{ node.name }}|{{node.uuid}}|{{ node.id }}|{{ node.site }}|{{ node.class }}|{{ node.payload }}|{{ node.address }}|{{ node.mac }}|{{ run }}|{{ instanceId }}|{{ seedUrl }}|{{ seenUrl }}|{{ installCode }}|{{ "{{" }} ds }}' });
    expect((await render())['user-data']).toBe(
      `node-7|${UUID}|7|ams1|worker|cloud-init-nocloud|10.0.0.5|02:01:48:aa:bb:0c|3|${UUID}-3|https://agent.example:42114/v1/seed/${UUID}|https://agent.example:42114/v1/seen/${UUID}|${INSTALL_CODE_MARK}|{{ ds }}`,
    );
  });

  test('the seed that the class names is read, and not the one of the payload', async () => {
    await site({ 'edge/user-data': 'edge\n', 'cloud-init-nocloud/user-data': 'payload\n', 'edge/README.md': '# for people', 'edge/.hidden': 'x', 'edge/network-config': 'version: 2\n' });
    expect(await render({ seed: 'edge' })).toMatchObject({ 'user-data': 'edge\n', 'network-config': 'version: 2\n' });
  });

  test('a Talos machine configuration of several YAML documents is served as YAML', async () => {
    await site({ 'talos/document.yaml': 'version: v1alpha1\nmachine:\n  network:\n    hostname: {{ node.name }}\n---\nkind: x\n' });
    expect(await createSeedRenderer({ folder, agentUrl: AGENT_URL }).document({ ...subject, payload: 'talos' })).toEqual({
      contentType: 'application/yaml; charset=utf-8',
      body: 'version: v1alpha1\nmachine:\n  network:\n    hostname: node-7\n---\nkind: x\n',
    });
  });

  const rows: { name: string; files: Record<string, string | Buffer>; changes?: Partial<SeedSubject>; what: RegExp }[] = [
    { name: 'an unknown mark', files: { 'user-data': 'a\n{{ node.password }}\n' }, what: /user-data:2: there is no fact node\.password; there are node\.name,/ },
    { name: "a mark of cloud-init's own jinja", files: { 'user-data': '{{ ds.meta_data.x }}' }, what: /user-data:1: there is no fact ds\.meta_data\.x/ },
    { name: 'a mark that is not closed', files: { 'user-data': 'x\n\n{{ node.name\n}}' }, what: /user-data:3: a mark is not closed/ },
    { name: 'a pipeline', files: { 'user-data': '{{ node.name | upper }}' }, what: /user-data:1: a mark is not closed, or holds more than a name/ },
    { name: 'a prototype key as a mark', files: { 'user-data': '{{ constructor }}' }, what: /there is no fact constructor/ },
    { name: 'a fact that this node has not', files: { 'user-data': '{{ node.address }}' }, changes: { addresses: [] }, what: /this node has no node\.address/ },
    { name: 'a name that YAML would read as more than itself', files: { 'user-data': 'hostname: {{ node.name }}' }, changes: { nodeName: 'node: 1 #x' }, what: /value of node\.name has characters/ },
    { name: 'a name with a line break', files: { 'user-data': 'hostname: {{ node.name }}' }, changes: { nodeName: 'a\nruncmd: [x]' }, what: /value of node\.name has characters/ },
    { name: 'a misspelt file', files: { userdata: 'x' }, what: /cloud-init-nocloud\/userdata is none of/ },
    { name: 'a file that is not UTF-8', files: { 'user-data': Buffer.from([0xff, 0xfe, 0x00]) }, what: /is not UTF-8/ },
    { name: 'a file that is too large', files: { 'user-data': Buffer.alloc(200_001, 'x') }, what: /larger than 200000 bytes/ },
    { name: 'a folder in the place of a file', files: { 'user-data/x': 'y' }, what: /user-data cannot be read \(EISDIR\)/ },
    { name: 'meta-data with a fixed instance-id', files: { 'meta-data': 'instance-id: iid-1\n' }, what: /needs `instance-id/ },
    { name: 'meta-data with instance_id', files: { 'meta-data': 'instance_id: "{{ instanceId }}"\n' }, what: /needs `instance-id/ },
    { name: 'meta-data whose hostname is no string', files: { 'meta-data': 'instance-id: "{{ instanceId }}"\nlocal-hostname: 1:30\n' }, what: /local-hostname/ },
    { name: 'meta-data that is no YAML', files: { 'meta-data': 'a: [b' }, what: /meta-data is no YAML/ },
    { name: 'network-config that is a list', files: { 'network-config': '- a\n' }, what: /network-config is no YAML map/ },
    { name: 'vendor-data that forgets the phone_home of the class', files: { 'vendor-data': '#cloud-config\n' }, changes: { phoneHome: true }, what: /vendor-data has none with/ },
    { name: 'a seed that is not there', files: {}, changes: { seed: 'edge' }, what: /there is no seed edge/ },
    { name: 'a seed name that climbs out of the folder', files: {}, changes: { seed: '../etc' }, what: /there is no seed \.\.\/etc/ },
  ];
  test.each(rows)('$name is refused by name', async ({ files, changes, what }) => {
    await site(Object.fromEntries(Object.entries(files).map(([path, content]) => [`cloud-init-nocloud/${path}`, content])));
    await expect(render(changes)).rejects.toMatchObject(refused(what));
  });

  test.each([
    ['JSON that a name broke', { 'document.json': '{"a": {{ node.name }}}' }, /document\.json is no JSON/],
    ['broken YAML', { 'document.yaml': 'a: [b' }, /document\.yaml is no YAML once its marks are filled \(line 1/],
    ['two documents', { 'document.yaml': 'a: b', 'document.json': '{}' }, /both document\.json and document\.yaml/],
    ['a code that is fetched with the code', { 'document.txt': '{{ installCode }}' }, /this node has no installCode here/],
  ] as [string, Record<string, string>, RegExp][])('a served document with %s is refused by name', async (_, files, what) => {
    await site(Object.fromEntries(Object.entries(files).map(([path, content]) => [`talos/${path}`, content])));
    await expect(createSeedRenderer({ folder, agentUrl: AGENT_URL }).document({ ...subject, payload: 'talos' })).rejects.toMatchObject(refused(what));
  });

  test('a mended file is used at the next rendering', async () => {
    await site({ 'cloud-init-nocloud/user-data': '{{ oops }}' });
    await expect(render()).rejects.toMatchObject({ code: 'seed_invalid' });
    await site({ 'cloud-init-nocloud/user-data': 'good\n' });
    expect((await render())['user-data']).toBe('good\n');
  });
});
