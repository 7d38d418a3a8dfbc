import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createNetboxClient } from '../../src/netbox/client.js';
import type { RestOptions } from '../../src/netbox/rest.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { SITE_FIELDS } from '../../src/simulator/netbox-stand-in/custom-fields.js';
import { silentLogger } from '../../src/telemetry/log.js';

const log = silentLogger();
const TOKEN = 'nbt_testtoken001.0123456789012345678901234567890123456789';
const UUID = '4c4c4544-0051-3010-8052-b4c04f4e3532';
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function standIn(options: Partial<Parameters<typeof startNetboxStandIn>[0]> = {}): Promise<NetboxStandIn> {
  const netbox = await startNetboxStandIn({ token: TOKEN, log, ...options });
  closers.push(() => netbox.close());
  return netbox;
}
function clientOf(url: string, { token = TOKEN, ...options }: Partial<RestOptions> = {}) {
  const client = createNetboxClient({ url, token, timeoutMs: 100_000, log, ...options });
  closers.push(() => client.close());
  return client;
}
const declared = (netbox: NetboxStandIn, name = 'node-1', more: object = {}): string =>
  netbox.addDevice({
    name,
    site: 'ams1',
    customFields: { bmc_type: 'amt', node_class: 'compute', system_uuid: UUID, wipe_disks: ['S1'], desired_action: 'provision' },
    interfaces: [{ name: 'eno1', mac: '02:00:00:00:00:01', addresses: ['192.0.2.10/24'] }],
    oobIp: '127.0.0.2/8',
    bmcPort: 16_993,
    ...more,
  });

describe('client and stand-in', () => {
  test('a declared device is read with interfaces, addresses and BMC', async () => {
    const netbox = await standIn();
    const id = declared(netbox);
    expect(await clientOf(netbox.url).readDevice(id)).toEqual({
      id, name: 'node-1', status: 'planned', site: 'ams1', nodeClass: 'compute', desiredAction: 'provision', unknownAction: null, systemUuid: UUID, rootDisk: null,
      wipeDisks: ['S1'], tpmEk: null, bmc: { type: 'amt', host: '127.0.0.2', port: 16_993 }, macs: ['02:00:00:00:00:01'], addresses: ['192.0.2.10'],
      metadata: { tags: [], interfaces: [{ name: 'eno1', mac: '02:00:00:00:00:01', addresses: ['192.0.2.10/24'] }], primary: [], sshKeys: [], userData: null, network: null },
      lastUpdated: netbox.device(id).lastUpdated, etag: expect.stringMatching(/^W\/".+\+00:00"$/),
    });
  });

  test('a device that is not there reads null and is gone to a write', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const device = (await client.readDevice(declared(netbox)))!;
    netbox.deleteDevice(device.id);
    expect(await client.readDevice(device.id)).toBeNull();
    expect(await client.writeDevice(device, { status: 'staged', message: 'x' })).toEqual({ kind: 'gone' });
  });

  test('B1: several devices at once read as each alone, over as many pages as it takes; one that is gone is absent, and one with a mistake is its error', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const wide = Array.from({ length: 520 }, (_, n) => ({ name: `v${n}`, mac: `02:00:00:00:${(n >> 8).toString(16).padStart(2, '0')}:${(n & 255).toString(16).padStart(2, '0')}`, mgmtOnly: n > 9 }));
    const ids = [declared(netbox, 'one'), declared(netbox, 'wide', { interfaces: wide }), declared(netbox, 'two', { interfaces: [{ name: 'eno1', mac: '02:00:00:00:ff:01', addresses: ['192.0.2.11/24'] }] })];
    const mistaken = declared(netbox, 'mistaken', { customFields: { bmc_type: 'amt', system_uuid: 'not-a-uuid' } });
    const gone = declared(netbox, 'gone');
    netbox.deleteDevice(gone);
    const alone = await Promise.all(ids.map(async (id) => ({ ...(await client.readDevice(id)), etag: null })));
    const read = await client.readDevices([...ids, mistaken, gone]);
    expect(ids.map((id) => read.get(id))).toEqual(alone);
    expect(read.get(mistaken)).toMatchObject({ code: 'device_invalid', details: { field: 'system_uuid' } });
    expect([read.has(gone), read.size]).toEqual([false, 4]);
    expect([await client.readDevices([]), await client.readDevices([gone])]).toEqual([new Map(), new Map()]);
  });

  test('interfaces beyond one page are all read', async () => {
    const netbox = await standIn();
    const mgmt = Array.from({ length: 130 }, (_, n) => ({ name: `v${n}`, mgmtOnly: true }));
    const id = declared(netbox, 'wide', { interfaces: [...mgmt, { name: 'eno1', mac: '02:00:00:00:00:09' }] });
    expect((await clientOf(netbox.url).readDevice(id))!.macs).toEqual(['02:00:00:00:00:09']);
  });

  test('a write sends raw values under the ETag and gives back the device it made', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const device = (await client.readDevice(declared(netbox)))!;
    const written = await client.writeDevice(device, { status: 'staged', fields: { desired_action: null, lifecycle_state: 'provisioning' }, message: 'm'.repeat(500) });
    expect(written).toMatchObject({ kind: 'written', device: { status: 'staged', desiredAction: null, macs: device.macs, addresses: device.addresses } });
    expect(netbox.device(device.id)).toMatchObject({ status: 'staged', customFields: { desired_action: null, lifecycle_state: 'provisioning' } });
    expect(written.kind === 'written' && (await client.writeDevice(written.device, { status: 'active', message: 'next' })).kind).toBe('written');
  });

  test('a write after a person edited is a conflict and changes nothing (412)', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const device = (await client.readDevice(declared(netbox)))!;
    netbox.patchDevice(device.id, { custom_fields: { desired_action: 'retire' } });
    expect(await client.writeDevice(device, { fields: { desired_action: null }, message: 'taken' })).toEqual({ kind: 'conflict' });
    expect(netbox.device(device.id).customFields.desired_action).toBe('retire');
  });

  test('a custom field that the site never created is named', async () => {
    const { lifecycle_url: _, ...fields } = SITE_FIELDS;
    const netbox = await standIn({ fields });
    const client = clientOf(netbox.url);
    const device = (await client.readDevice(declared(netbox)))!;
    await expect(client.writeDevice(device, { fields: { lifecycle_state: 'planned', lifecycle_url: 'http://x/' }, message: 'x' })).rejects.toMatchObject({
      code: 'device_invalid', details: { field: 'lifecycle_url' },
    });
    expect(netbox.device(device.id).customFields.lifecycle_state).toBeUndefined();
  });

  test('journal entries are kept on the device', async () => {
    const netbox = await standIn();
    const id = declared(netbox);
    await clientOf(netbox.url).addJournalEntry(id, 'warning', 'desired_action holds explode');
    expect(netbox.journal(id)).toMatchObject([{ kind: 'warning', comments: 'desired_action holds explode' }]);
  });

  test('a lost event is found by the list of what asks and what changed (N3)', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const asking = declared(netbox, 'asking');
    const idle = netbox.addDevice({ name: 'idle' });
    const found = (...ids: string[]) => ids.map((id) => ({ id, lastUpdated: netbox.device(id).lastUpdated }));
    expect(await client.listChanged(null)).toEqual({ devices: found(asking, idle), newest: netbox.device(idle).lastUpdated });
    const { newest } = await client.listChanged(null);
    const later = netbox.addDevice({ name: 'later' });
    expect(await client.listChanged(newest)).toEqual({ devices: found(asking, idle, later), newest: netbox.device(later).lastUpdated });
    const after = await client.listChanged(netbox.device(later).lastUpdated);
    expect(after).toEqual({ devices: found(asking, later), newest: netbox.device(later).lastUpdated });
  });

  test('a list longer than a page is read to its end', async () => {
    const netbox = await standIn();
    for (let n = 0; n < 1001; n++) netbox.addDevice({ name: `n${n}` });
    expect((await clientOf(netbox.url).listChanged(null)).devices).toHaveLength(1001);
  });
});

describe("a person's request through metalflow", () => {
  test('sets the field, once, and is taken back by an empty one', async () => {
    const netbox = await standIn({ webhook: undefined });
    const client = clientOf(netbox.url);
    const id = netbox.addDevice({ name: 'n' });
    await client.request(id, 'provision', 'ada');
    const { lastUpdated } = netbox.device(id);
    await client.request(id, 'provision', 'ada');
    expect(netbox.device(id)).toMatchObject({ customFields: { desired_action: 'provision' }, lastUpdated });
    await expect(client.request(id, 'retire', 'bob')).rejects.toMatchObject({ code: 'request_pending', details: { asked: 'provision' } });
    await client.request(id, null, 'ada');
    expect(netbox.device(id).customFields.desired_action).toBeNull();
  });

  test('replaces a value that asks for nothing we know', async () => {
    const netbox = await standIn({ fields: { ...SITE_FIELDS, desired_action: { type: 'text' } } });
    const id = netbox.addDevice({ name: 'n', customFields: { desired_action: 'explode' } });
    await clientOf(netbox.url).request(id, 'provision', 'ada');
    expect(netbox.device(id).customFields.desired_action).toBe('provision');
  });

  test('for a device that is not there is refused', async () => {
    const netbox = await standIn();
    await expect(clientOf(netbox.url).request('77', 'provision', 'ada')).rejects.toMatchObject({ code: 'device_not_found' });
  });
});

describe('a NetBox that cannot be read', () => {
  /** A server that answers what it is told and counts. */
  async function faulty(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<{ url: string; calls: string[] }> {
    const calls: string[] = [];
    const server: Server = createServer((request, response) => {
      calls.push(`${request.method} ${request.url}`);
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
  }
  const say = (status: number, body: string, headers: Record<string, string> = {}) => (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };

  test.each([
    ['refuses the token (403, as captured)', 403, '{"detail":"Invalid v2 token"}', 'Invalid v2 token'],
    ['refuses the token (401)', 401, '{"detail":"no"}', 'the token is refused'],
    ['is broken', 500, '<html>', 'answered 500'],
    ['is behind a proxy whose upstream is away', 502, 'bad gateway', 'answered 502'],
    ['is not NetBox', 200, '{"hello":"world"}', "not NetBox's"],
    ['answers HTML', 200, '<html>', 'not JSON'],
    ['is a web server without that page', 404, '<html>no such page', 'answered 404'],
    ['has moved', 301, '', 'answered 301 to https://elsewhere.example/'],
  ])('%s', async (_, status, body, why) => {
    const { url } = await faulty(say(status, body, { location: 'https://elsewhere.example/' }));
    await expect(clientOf(url).readDevice('1')).rejects.toMatchObject({ code: 'netbox_unreachable', details: { why: expect.stringContaining(why) } });
  });

  test('does not answer: the limit is named, and no secret', async () => {
    const { url } = await faulty(() => undefined);
    const again: unknown[] = [];
    const noting = { ...log, debug: (_: unknown, text: unknown) => void again.push(text) } as typeof log;
    const error = await clientOf(url, { timeoutMs: 60, log: noting }).readDevice('1').catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'netbox_unreachable', details: { why: expect.stringContaining('no answer within 60 ms') } });
    expect(JSON.stringify(error) + String(error)).not.toContain(TOKEN);
    expect(again).toEqual(['NetBox read failed, trying again']);
  });

  test('nobody listens', async () => {
    // A port that nobody is given who asks for any.
    await expect(clientOf('http://127.0.0.1:1').readDevice('1')).rejects.toMatchObject({ code: 'netbox_unreachable', details: { why: expect.stringContaining('ECONNREFUSED') } });
  });

  test('a read that failed once is tried again, a write is not', async () => {
    let fail = true;
    const netbox = await standIn();
    const id = declared(netbox);
    const device = (await clientOf(netbox.url).readDevice(id))!;
    const flaky = await faulty((_, response) => {
      response.writeHead(fail ? 503 : 404, { 'content-type': 'application/json' }).end('{"detail":"Not found."}');
      fail = false;
    });
    const client = clientOf(flaky.url);
    expect(await client.readDevice(id)).toBeNull();
    fail = true;
    await expect(client.writeDevice(device, { status: 'failed', message: 'x' })).rejects.toMatchObject({ code: 'netbox_unreachable' });
    expect(flaky.calls).toEqual([`GET /api/dcim/devices/${id}/`, `GET /api/dcim/devices/${id}/`, `PATCH /api/dcim/devices/${id}/`]);
  });

  test('pages without end are an error, and a next link of another host is not followed there', async () => {
    const { url, calls } = await faulty(say(200, '{"count":null,"next":"http://elsewhere.example/api/dcim/devices/?start=2","previous":null,"results":[{"id":1,"last_updated":"2026-11-30T11:50:07.722924Z"}]}'));
    await expect(clientOf(url).listChanged(null)).rejects.toMatchObject({ code: 'netbox_unreachable', details: { why: expect.stringContaining('pages') } });
    expect(calls).toHaveLength(200);
  });

  test('a NetBox that gives no ETag is not written to', async () => {
    const netbox = await standIn();
    const client = clientOf(netbox.url);
    const device = (await client.readDevice(declared(netbox)))!;
    await expect(client.writeDevice({ ...device, etag: null }, { status: 'staged', message: 'x' })).rejects.toMatchObject({ code: 'netbox_unreachable', details: { why: expect.stringContaining('ETag') } });
  });

  test('breaks connections while it is down, and is read again afterwards', async () => {
    const netbox = await standIn();
    const id = declared(netbox);
    const client = clientOf(netbox.url);
    netbox.down = true;
    await expect(client.readDevice(id)).rejects.toMatchObject({ code: 'netbox_unreachable' });
    netbox.down = false;
    expect((await client.readDevice(id))!.id).toBe(id);
  });

  test.each([['nbt_abc.def', 'Bearer nbt_abc.def'], ['0123456789abcdef0123456789abcdef01234567', 'Token 0123456789abcdef0123456789abcdef01234567']])('token %s goes as its version wants', async (token, header) => {
    let sent: string | undefined;
    const { url } = await faulty((request, response) => { sent = request.headers.authorization; say(404, '{"detail":"Not found."}')(request, response); });
    await clientOf(url, { token }).readDevice('1');
    expect(sent).toBe(header);
  });
});

describe('the stand-in refuses as NetBox was seen to', () => {
  const capture = (name: string): { status: number; body: unknown } => JSON.parse(readFileSync(join(__dirname, '../fixtures/netbox', `${name}.json`), 'utf8'));
  const patch = async (netbox: NetboxStandIn, id: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${netbox.url}/api/dcim/devices/${id}/`, { method: 'PATCH', headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
  };

  test('a choice it does not have', async () => {
    const netbox = await standIn();
    const { status, body } = capture('rest-patch-bad-choice-400');
    expect(await patch(netbox, declared(netbox), { custom_fields: { desired_action: 'explode' } })).toEqual({ status, body });
  });
  test('a select written as it reads (N5)', async () => {
    const netbox = await standIn();
    expect((await patch(netbox, declared(netbox), { custom_fields: { desired_action: { value: 'provision', label: 'Provision' } } })).status).toBe(400);
  });
  test('a stale ETag', async () => {
    const netbox = await standIn();
    const { status, body } = capture('rest-patch-if-match-stale-412');
    expect(await patch(netbox, declared(netbox), { status: 'active' }, { 'if-match': 'W/"2026-11-30T11:50:00.785449+00:00"' })).toEqual({ status, body });
  });
  test('a wrong token', async () => {
    const netbox = await standIn();
    const { status, body } = capture('rest-bad-token');
    expect(await patch(netbox, declared(netbox), {}, { authorization: 'Bearer nbt_testtoken001.wrong' })).toEqual({ status, body });
  });
});
