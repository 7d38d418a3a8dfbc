/** A Redfish service as DSP0266 has it: who we are to it, which system is the machine, and what is asked of it. */
import { createRedfishBmc } from '../../src/bmc/redfish/client.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { noSocketsLeft, ROOMY } from '../support/amt.js';
import { authorities, certificate, fingerprintOf } from '../support/certificates.js';
import { CREDENTIALS, MACHINE_UUID, RESET, redfishError, SESSIONS, startRedfishBench, SYSTEM, systemAt, type RedfishBench } from '../support/redfish.js';

const benches: RedfishBench[] = [];
afterEach(async () => {
  await noSocketsLeft();
  await Promise.all(benches.splice(0).map((bench) => bench.close()));
});
async function start(options: Parameters<typeof startRedfishBench>[0] = {}): Promise<RedfishBench> {
  const bench = await startRedfishBench(options);
  benches.push(bench);
  return bench;
}
const OTHER_UUID = MACHINE_UUID.replace('4c4c', '5d5d');
const BLADE = '/redfish/v1/Systems/Blade2';

describe('reading', () => {
  test.each([
    ['On', { kind: 'read', power: 'on' }],
    ['Off', { kind: 'read', power: 'off-soft' }],
    ['PoweringOn', { kind: 'read', power: 'powering-on' }],
    ['PoweringOff', { kind: 'read', power: 'powering-off' }],
    ['Paused', { kind: 'read', power: 'paused' }],
    ['Napping', { kind: 'unknown', code: 'bmc_answer_invalid' }],
    [null, { kind: 'unknown', code: 'bmc_answer_invalid' }],
    [7, { kind: 'unknown', code: 'bmc_answer_invalid' }],
  ])('PowerState %j is %j', async (state, reading) => {
    const bench = await start();
    bench.system['PowerState'] = state;
    expect(await bench.open().observePower()).toMatchObject(reading);
  });
  test.each([
    [MACHINE_UUID.toUpperCase(), { kind: 'read', uuid: MACHINE_UUID }],
    ['00000000-0000-0000-0000-000000000000', { kind: 'unreadable' }],
    ['', { kind: 'unreadable' }],
    [null, { kind: 'unreadable' }],
  ])('UUID %j is %j', async (uuid, reading) => {
    const bench = await start();
    bench.system['UUID'] = uuid;
    expect(await bench.open().machineUuid()).toMatchObject(reading);
  });
  test('says who made the machine, and the versions of its BMC', async () => {
    const bench = await start();
    expect(await bench.open().identify()).toEqual({ product: 'ACME R1', version: 'firmware 2.71, Redfish 1.6.0' });
    expect(await bench.open().capabilities()).toEqual({ bootOnceFromNetwork: true });
  });
  test('a system of which little is said is read all the same', async () => {
    const bench = await start();
    for (const name of Object.keys(bench.system)) if (name !== 'PowerState') delete bench.system[name];
    const bmc = bench.open();
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(await bmc.machineUuid()).toMatchObject({ kind: 'unreadable' });
    expect(await bmc.identify()).toEqual({ product: 'Redfish', version: 'Redfish 1.6.0' });
    expect(await bmc.powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why: expect.stringContaining('no Reset action') });
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why: expect.stringContaining('no Boot property') });
    expect(bench.sent('POST', 'PATCH')).toEqual([]);
  });
});

describe('a session', () => {
  test('is opened once, signs what follows, and is deleted at close', async () => {
    const bench = await start();
    const bmc = bench.open();
    await bmc.observePower();
    await bmc.powerOn();
    expect(bench.sessions.size).toBe(1);
    expect(bench.journal.filter(({ path }) => path === SESSIONS)).toHaveLength(1);
    expect(bench.journal.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
    await bmc.close();
    expect(bench.sessions.size).toBe(0);
    expect(bench.journal.at(-1)).toMatchObject({ method: 'DELETE', path: `${SESSIONS}/1` });
  });
  test('that has expired is opened again, and the command is sent once under the new one', async () => {
    const bench = await start();
    const bmc = bench.open();
    await bmc.observePower();
    bench.sessions.clear();
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    expect(bench.system['PowerState']).toBe('On');
    expect(bench.journal.filter(({ path }) => path === SESSIONS)).toHaveLength(2);
  });
  test('that expires between reading and commanding costs no second effect', async () => {
    const bench = await start();
    let expired = false;
    bench.wrong = ({ path }) => (path === RESET && !expired ? ((expired = true), bench.sessions.clear(), undefined) : undefined);
    expect(await bench.open().powerOn()).toEqual({ kind: 'accepted' });
    expect(bench.journal.filter(({ path }) => path === RESET)).toHaveLength(2);
  });
  test('that the service never takes is a wrong password, after two', async () => {
    const bench = await start();
    bench.wrong = ({ path, method }) => (path.startsWith('/redfish/v1/Systems') && method === 'GET' ? { status: 401 } : undefined);
    expect(await bench.open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_auth_failed' });
    expect(bench.journal.filter(({ path }) => path === SESSIONS)).toHaveLength(2);
  });
  test.each([
    ['there are none', { sessions: false }, null],
    ['too many are open', {}, { status: 503, body: redfishError('SessionLimitExceeded', 'too many') }],
    ['the service does not make them', {}, { status: 405 }],
    ['no token comes with them', {}, { status: 201, body: {} }],
  ])('is not needed where %s: Basic does', async (_why, options, reply) => {
    const bench = await start(options);
    bench.wrong = ({ path }) => (path === SESSIONS ? (reply ?? undefined) : undefined);
    const bmc = bench.open();
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    await bmc.close();
    expect(bench.sent('DELETE')).toEqual([]);
  });
  test('a root that asks for credentials gets Basic', async () => {
    const bench = await start();
    bench.wrong = ({ path, headers }) => (path === '/redfish/v1/' && !headers.authorization ? { status: 401 } : undefined);
    expect(await bench.open().observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(bench.journal.filter(({ path }) => path === SESSIONS)).toEqual([]);
  });
  test('no password leaves before the root has answered', async () => {
    const bench = await start();
    bench.wrong = () => ({ status: 500, body: 'broken' });
    await bench.open().observePower();
    expect(bench.journal.every(({ headers, body }) => headers.authorization === undefined && body === null)).toBe(true);
  });
  test.each([true, false])('the wrong password is bmc_auth_failed, for reads and commands (sessions: %s)', async (sessions) => {
    const bench = await start({ sessions });
    const bmc = bench.open({ password: 'wrong' });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_auth_failed', why: expect.stringContaining('bmc-redfish') });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed' });
    expect(bench.sent('POST', 'PATCH')).toEqual([]);
  });
});

describe('which system is the machine', () => {
  const two = { others: { [BLADE]: systemAt(BLADE, { UUID: OTHER_UUID, Name: 'the second blade' }) } };
  test.each([
    ['the one with the UUID of the device', { systemUuid: OTHER_UUID }, OTHER_UUID],
    ['the one that NetBox names by the last part of its path', { system: 'Blade2' }, OTHER_UUID],
    ['the one that NetBox names by its path', { system: BLADE }, OTHER_UUID],
    ['the one that NetBox names by its name', { system: 'the second blade' }, OTHER_UUID],
    ['the one that NetBox names, whatever the UUID', { system: '1', systemUuid: OTHER_UUID }, MACHINE_UUID],
  ])('%s', async (_what, address, uuid) => {
    const bench = await start(two);
    expect(await bench.open({ address }).machineUuid()).toEqual({ kind: 'read', uuid });
  });
  test('the only one, without looking at its name', async () => {
    const bench = await start();
    expect(await bench.open({ address: { systemUuid: OTHER_UUID } }).machineUuid()).toEqual({ kind: 'read', uuid: MACHINE_UUID });
  });
  test.each([
    ['no UUID and no name', {}, 'system_uuid is empty'],
    ['a UUID that none has', { systemUuid: MACHINE_UUID.replace('4c4c', '6e6e') }, 'none has the UUID'],
    ['a name that none has', { system: 'Blade9' }, 'none is called Blade9'],
  ])('%s, of two: NetBox is asked to say, and is told which there are; nothing is sent', async (_what, address, why) => {
    const bench = await start(two);
    const bmc = bench.open({ address });
    for (const ask of [() => bmc.observePower(), () => bmc.powerOff(), () => bmc.bootOnceFromNetwork()]) {
      await expect(ask()).rejects.toMatchObject({ code: 'device_invalid', details: { field: 'config_context.metalflow.bmc_system', what: expect.stringMatching(new RegExp(`2 systems and ${why}.*1 \\(UUID ${MACHINE_UUID}\\), Blade2 \\(UUID ${OTHER_UUID}\\)`)) } });
    }
    expect(bench.sent('POST', 'PATCH')).toEqual([]);
  });
  test('a twin of it makes the UUID useless', async () => {
    const bench = await start({ others: { [BLADE]: systemAt(BLADE) } });
    await expect(bench.open({ address: { systemUuid: MACHINE_UUID } }).observePower()).rejects.toMatchObject({ code: 'device_invalid', details: { what: expect.stringContaining('2 has the UUID') } });
  });
  test('a list over several pages is read to its end', async () => {
    const bench = await start();
    bench.wrong = ({ path }) => {
      if (path === '/redfish/v1/Systems') return { status: 200, body: { Members: [{ '@odata.id': BLADE }], 'Members@odata.nextLink': '/redfish/v1/Systems?$skip=1' } };
      return path === '/redfish/v1/Systems?$skip=1' ? { status: 200, body: { Members: [{ '@odata.id': SYSTEM }] } } : undefined;
    };
    expect(await bench.open({ address: { system: '1' } }).machineUuid()).toEqual({ kind: 'read', uuid: MACHINE_UUID });
  });
  test.each(['http://elsewhere.example/redfish/v1/Systems/1', '//elsewhere.example/1', '/a path\r\nX: y', 7])('a member at %j is not followed', async (id) => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === '/redfish/v1/Systems' ? { status: 200, body: { Members: [{ '@odata.id': id }] } } : undefined);
    expect(await bench.open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_answer_invalid' });
  });
});

describe('power', () => {
  const reset = (type: string): string => `POST /Actions/ComputerSystem.Reset {"ResetType":"${type}"}`;
  test.each([
    ['on', ['On', 'ForceOff'], 'On'],
    ['on', ['ForceOn', 'ForceOff'], 'ForceOn'],
    ['on', undefined, 'On'],
    ['off', ['On', 'ForceOff', 'GracefulShutdown'], 'ForceOff'],
    ['off', undefined, 'ForceOff'],
  ] as const)('%s, where the service allows %j, is ResetType %s', async (command, allowed, type) => {
    const bench = await start();
    const action = (bench.system['Actions'] as Record<string, Record<string, unknown>>)['#ComputerSystem.Reset']!;
    action['ResetType@Redfish.AllowableValues'] = allowed;
    const bmc = bench.open();
    expect(await (command === 'on' ? bmc.powerOn() : bmc.powerOff())).toEqual({ kind: 'accepted' });
    expect(bench.sent('POST')).toEqual([reset(type)]);
  });
  test('takes the allowed types from ActionInfo where they are there', async () => {
    const bench = await start();
    const action = (bench.system['Actions'] as Record<string, Record<string, unknown>>)['#ComputerSystem.Reset']!;
    delete action['ResetType@Redfish.AllowableValues'];
    action['@Redfish.ActionInfo'] = `${SYSTEM}/ResetActionInfo`;
    bench.wrong = ({ path }) => (path.endsWith('ResetActionInfo') ? { status: 200, body: { Parameters: [{ Name: 'ResetType', AllowableValues: ['ForceOn', 'ForceOff'] }] } } : undefined);
    expect(await bench.open().powerOn()).toEqual({ kind: 'accepted' });
    expect(bench.sent('POST')).toEqual([reset('ForceOn')]);
  });
  test('off is never graceful: where there is no ForceOff it is refused, with what there is', async () => {
    const bench = await start();
    (bench.system['Actions'] as Record<string, Record<string, unknown>>)['#ComputerSystem.Reset']!['ResetType@Redfish.AllowableValues'] = ['GracefulShutdown', 'PushPowerButton'];
    expect(await bench.open().powerOff()).toMatchObject({ kind: 'refused', why: 'it allows no ResetType ForceOff; there are: GracefulShutdown, PushPowerButton' });
    expect(bench.sent('POST')).toEqual([]);
  });
  test('a task is accepted: observation tells', async () => {
    const bench = await start();
    bench.wrong = ({ path }) => (path === RESET ? { status: 202, headers: { location: '/redfish/v1/TaskService/Tasks/1' }, body: { TaskState: 'Running' } } : undefined);
    expect(await bench.open().powerOn()).toEqual({ kind: 'accepted' });
  });
});

describe('one boot from the network', () => {
  test('is PXE, once, UEFI where the service has modes, under the tag that was read', async () => {
    const bench = await start();
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(bench.system.Boot).toMatchObject({ BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'Pxe', BootSourceOverrideMode: 'UEFI' });
    expect(bench.journal.find(({ method }) => method === 'PATCH')?.headers['if-match']).toBe('"1"');
    expect(bench.sent('POST')).toEqual([]);
  });
  test('is UefiHttp where NetBox asks for it', async () => {
    const bench = await start();
    await bench.open({ address: { boot: 'uefi-http' } }).bootOnceFromNetwork();
    expect(bench.system.Boot).toMatchObject({ BootSourceOverrideTarget: 'UefiHttp' });
  });
  test('a tag that changed meanwhile is read again, once', async () => {
    const bench = await start();
    let changes = 1;
    bench.wrong = ({ method }) => (method === 'PATCH' && changes-- > 0 ? { status: 412, body: redfishError('PreconditionFailed', 'x') } : undefined);
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    changes = Infinity;
    expect(await bench.open().bootOnceFromNetwork()).toMatchObject({ kind: 'refused', details: { value: 'HTTP 412 PreconditionFailed' } });
    expect(bench.sent('PATCH')).toHaveLength(4);
  });
  test('a weak tag that the service compares word for word is sent as a strong one the second time', async () => {
    const bench = await start();
    const tags: unknown[] = [];
    bench.wrong = ({ method, path, headers }) => {
      if (method === 'GET' && path === SYSTEM) return { status: 200, headers: { etag: 'W/"77"' }, body: bench.system };
      if (method !== 'PATCH') return undefined;
      tags.push(headers['if-match']);
      return headers['if-match'] === '"77"' ? { status: 200, body: {} } : { status: 412 };
    };
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(tags).toEqual(['W/"77"', '"77"']);
  });
  test('a tag that is only in the body is used too', async () => {
    const bench = await start();
    bench.system['@odata.etag'] = '"from-the-body"';
    bench.wrong = ({ method, path }) => (method === 'GET' && path === SYSTEM ? { status: 200, body: bench.system } : method === 'PATCH' ? { status: 204 } : undefined);
    await bench.open().bootOnceFromNetwork();
    expect(bench.journal.find(({ method }) => method === 'PATCH')?.headers['if-match']).toBe('"from-the-body"');
  });
  test('a mode that the service refuses is left out the second time', async () => {
    const bench = await start();
    bench.wrong = ({ method, body }) => (method === 'PATCH' && (body!['Boot'] as object) && 'BootSourceOverrideMode' in (body!['Boot'] as object) ? { status: 400, body: redfishError('PropertyNotWritable', 'BootSourceOverrideMode is read-only') } : undefined);
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(bench.sent('PATCH')).toEqual([
      'PATCH  {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}',
      'PATCH  {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}',
    ]);
  });
  test('that is impossible is refused before anything is sent, with what to change', async () => {
    const bench = await start();
    bench.system.Boot!['BootSourceOverrideTarget@Redfish.AllowableValues'] = ['None', 'Hdd'];
    const bmc = bench.open();
    const why = expect.stringMatching(/no boot target Pxe \(there are: None, Hdd\): enable network boot in the firmware/);
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why });
    expect(await bmc.capabilities()).toEqual({ bootOnceFromNetwork: false, why });
    expect(bench.sent('PATCH')).toEqual([]);
  });
});

test('TLS is spoken unless NetBox says otherwise: a service in the clear is not given the password', async () => {
  const bench = await start();
  const { port } = bench.open().address;
  const bmc = createRedfishBmc({ address: { type: 'redfish', host: '127.0.0.1', port: port! }, credentials: CREDENTIALS, secret: 'bmc-redfish', log: silentLogger(), timeouts: { ...ROOMY, tries: 1 } });
  expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_tls_failed', why: 'what answers there does not speak TLS' });
  expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_tls_failed' });
  await bmc.close();
  expect(bench.journal).toEqual([]);
});

describe('over TLS', () => {
  const pin = (name: Parameters<typeof fingerprintOf>[0]): string => fingerprintOf(name).replaceAll(':', '').toLowerCase();
  test.each([
    ['the pinned one', 'self-signed', { pin: pin('self-signed'), authorities: null, oldTls: false }],
    ['one of an authority of the site', 'amt', { pin: null, authorities, oldTls: false }],
  ] as const)('a service with %s is spoken to', async (_what, name, trust) => {
    const bench = await start({ tls: certificate(name) });
    expect(await bench.open({ trust }).observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  });
  test.each([
    ['another than the pinned one', 'self-signed', { pin: pin('amt'), authorities: null, oldTls: false }],
    ['one that nobody known has signed', 'self-signed', undefined],
    ['one that has expired', 'expired', { pin: null, authorities, oldTls: false }],
  ] as const)('a service with %s gets not one byte, and its fingerprint is shown', async (_what, name, trust) => {
    const bench = await start({ tls: certificate(name) });
    const bmc = bench.open(trust ? { trust } : {});
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_certificate_refused', why: expect.stringContaining(fingerprintOf(name)) });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_certificate_refused' });
    expect(bench.journal).toEqual([]);
  });
});
