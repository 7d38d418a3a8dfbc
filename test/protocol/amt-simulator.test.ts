/** The simulator by itself: the spellings and orders of other clients, its faults, its journal, and bad input. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { startAmtSimulator } from '../../src/simulator/amt/simulator.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { CREDENTIALS, MACHINE_UUID, noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';
import { AMT, bootSource, CIM, DISK, ENUMERATION, envelope, fault, GET, method, post as postTo, power, PXE, returnValue, role, S } from '../support/amt-wire.js';

let bench: AmtBench;
const start = async (options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench(options));
afterEach(async () => {
  // While the simulator still listens: it is the driver that has to hang up.
  await noSocketsLeft();
  await bench?.close();
});

const post = (...envelopes: string[]): ReturnType<typeof postTo> => postTo(bench.amt, ...envelopes);

describe('the orders of other clients', () => {
  test('Ironic, MAAS and PyPI amt: source, role, no Put, no clear, namespaced Name in the body', async () => {
    const { amt, machine } = await start();
    expect((await post(bootSource(PXE), role(1), power(2, { Name: 'Intel(r) AMT Power Management Service' }))).map(returnValue)).toEqual([0, 0, 0]);
    await amt.settled();
    expect(machine).toEqual(['on network']);
  });
  test('iamt: role before source', async () => {
    const { amt, machine } = await start();
    expect((await post(role(1), bootSource(PXE), power(2))).map(returnValue)).toEqual([0, 0, 0]);
    await amt.settled();
    expect(machine).toEqual(['on network']);
  });
  test('iamt: Enumerate and Pull of references', async () => {
    await start();
    const mode = '<wsman:EnumerationMode>EnumerateEPR</wsman:EnumerationMode>';
    const uri = `${CIM}CIM_BootSourceSetting`;
    const [opened] = await post(envelope(`${ENUMERATION}/Enumerate`, uri, `<wsen:Enumerate>${mode}</wsen:Enumerate>`));
    const context = /EnumerationContext>([^<]+)</.exec(opened!.body)![1]!;
    const pull = envelope(`${ENUMERATION}/Pull`, uri, `<wsen:Pull><wsen:EnumerationContext>${context}</wsen:EnumerationContext>${mode}</wsen:Pull>`);
    const [pulled, again] = await post(pull, pull);
    expect(pulled!.body.match(/<b:EndpointReference>/g)).toHaveLength(3);
    expect(pulled!.body).toContain(`<c:Selector Name="InstanceID">${PXE}</c:Selector>`);
    expect(pulled!.body).toContain('<g:EndOfSequence/>');
    expect(pulled!.body).not.toContain('EnumerationContext');
    expect(fault(again!)).toBe('InvalidEnumerationContext');
  });
  test('MPS: the items of CIM_ServiceAvailableToElement are named after the power association', async () => {
    await start();
    const uri = `${CIM}CIM_ServiceAvailableToElement`;
    const [opened] = await post(envelope(`${ENUMERATION}/Enumerate`, uri, '<wsen:Enumerate/>'));
    const [pulled] = await post(envelope(`${ENUMERATION}/Pull`, uri, `<wsen:Pull><wsen:EnumerationContext>${/EnumerationContext>([^<]+)</.exec(opened!.body)![1]}</wsen:EnumerationContext><wsen:MaxElements>999</wsen:MaxElements></wsen:Pull>`));
    expect(pulled!.body).toMatch(/<h:CIM_AssociatedPowerManagementService [^>]*><h:AvailableRequestedPowerStates>2<\/h:AvailableRequestedPowerStates><h:PowerState>8</);
  });
});

describe('one-time boot, as firmware does it', () => {
  test('the first source wins until it is cleared (failure mode 2)', async () => {
    const { amt } = await start();
    await post(bootSource(DISK), bootSource(PXE), role(1));
    expect(amt.armed()).toMatchObject({ source: DISK, boot: 'disk' });
    await post(method('CIM_BootConfigSetting', 'ChangeBootOrder', ''), bootSource(PXE));
    expect(amt.armed()).toMatchObject({ source: PXE, boot: 'network' });
  });
  test('without the role it boots from disk, and the source waits for whoever sets the role next (failure mode 1)', async () => {
    const { amt, machine } = await start();
    await post(bootSource(PXE), power(2), power(8), role(1), power(2));
    await amt.settled();
    expect(machine).toEqual(['on disk', 'off', 'on network']);
  });
  test('a stale BIOSSetup makes a source invalid', async () => {
    await start({ bootSettings: { BIOSSetup: 'true' } });
    expect((await post(bootSource(PXE))).map(returnValue)).toEqual([5]);
  });
  test('a person at the button uses up what is armed', async () => {
    const { amt, machine } = await start();
    await post(bootSource(PXE), role(1));
    amt.setPower('on');
    amt.setPower('off-hard');
    amt.setPower('on');
    await amt.settled();
    expect(machine).toEqual(['on network', 'off', 'on disk']);
  });
  test.each([
    ['an unknown source', bootSource('Intel(r) AMT: Force Floppy Boot'), 5],
    ['an unknown role', role(2), 5],
    ['another boot configuration', role(1, 'Intel(r) AMT: Boot Configuration 1'), 4],
  ])('%s is refused', async (_name, request, value) => {
    await start();
    expect((await post(request)).map(returnValue)).toEqual([value]);
  });
  test('a Put that carries read-only fields back is a fault', async () => {
    await start();
    const put = envelope('http://schemas.xmlsoap.org/ws/2004/09/transfer/Put', `${AMT}AMT_BootSettingData`, '<n1:AMT_BootSettingData><n1:OptionsCleared>true</n1:OptionsCleared></n1:AMT_BootSettingData>');
    expect((await post(put)).map((answer) => [answer.status, fault(answer)])).toEqual([[400, 'SchemaValidationError']]);
  });
});

describe('power requests', () => {
  test.each([
    ['on', 2, 2], ['on', 8, 0], ['on', 5, 0], ['on', 10, 0], ['on', 12, 2],
    ['off-soft', 2, 0], ['off-soft', 8, 2], ['off-soft', 5, 2], ['off-soft', 10, 2],
    ['hibernate', 2, 0], ['sleep-deep', 8, 0], ['on', 0, 5], ['on', 99, 5],
  ] as const)('from %s, %i has ReturnValue %i (failure mode 3)', async (initialPower, value, expected) => {
    await start({ initialPower });
    expect((await post(power(value))).map(returnValue)).toEqual([expected]);
  });
  test('a cycle is an off and a boot', async () => {
    const { amt, machine } = await start({ initialPower: 'on' });
    await post(bootSource(PXE), role(1), power(5));
    await amt.settled();
    expect(machine).toEqual(['off', 'on network']);
  });
  test('commands are in the journal file before they are answered', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'metalflow-amt-'));
    const journalFile = join(folder, 'journal');
    await start({ journalFile, now: () => new Date('2030-01-01T00:00:00Z') });
    await post(power(2), power(2));
    expect((await readFile(journalFile, 'utf8')).trim().split('\n').map((line) => JSON.parse(line) as unknown)).toEqual([
      { at: '2030-01-01T00:00:00.000Z', value: 2, returnValue: 0, answerLost: false },
      { at: '2030-01-01T00:00:00.000Z', value: 2, returnValue: 2, answerLost: false },
    ]);
    await rm(folder, { recursive: true });
  });
});

describe('what does not fit', () => {
  test.each([
    ['an unknown class', envelope(GET, `${CIM}CIM_Toaster`), 'DestinationUnreachable'],
    ['another host’s class', envelope(GET, 'urn:x'), 'DestinationUnreachable'],
    ['a wrong selector', power(8, { Name: 'Another Service' }), 'InvalidSelectors'],
    ['a selector that is no property', envelope(GET, `${CIM}CIM_BootService`, '', { Nonsense: '1' }), 'InvalidSelectors'],
    ['an unknown method', method('CIM_BootService', 'SelfDestruct', ''), 'ActionNotSupported'],
    ['a method of another class', envelope(`${CIM}CIM_BootService/SetBootConfigRole`, `${CIM}CIM_BootConfigSetting`), 'ActionNotSupported'],
    ['a method without input', envelope(`${CIM}CIM_BootService/SetBootConfigRole`, `${CIM}CIM_BootService`), 'SchemaValidationError'],
    ['an input in the wrong namespace', method('CIM_BootService', 'SetBootConfigRole', '').replaceAll('<n1:', '<wsa:').replaceAll('</n1:', '</wsa:'), 'SchemaValidationError'],
    ['a power request without target', method('CIM_PowerManagementService', 'RequestPowerStateChange', '<n1:PowerState>8</n1:PowerState>'), 'SchemaValidationError'],
    ['torn XML', '<s:Envelope xmlns:s="urn:x">', 'SchemaValidationError'],
    ['an undeclared prefix', '<s:Envelope/>', 'SchemaValidationError'],
    ['a document type', `<!DOCTYPE x><s:Envelope xmlns:s="${S}"><s:Body/></s:Envelope>`, 'SchemaValidationError'],
    ['SOAP 1.1', '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>', 'SchemaValidationError'],
    ['a context nobody opened', envelope(`${ENUMERATION}/Pull`, `${CIM}CIM_BootService`, '<wsen:Pull><wsen:EnumerationContext>x</wsen:EnumerationContext></wsen:Pull>'), 'InvalidEnumerationContext'],
  ])('%s is a fault with HTTP 400, and changes nothing', async (_name, request, subcode) => {
    const { amt } = await start({ initialPower: 'on' });
    expect((await post(request)).map((answer) => [answer.status, fault(answer)])).toEqual([[400, subcode]]);
    expect(amt.power()).toBe('on');
  });

  /** Raw bytes in, everything that comes back until the end. */
  const raw = (bytes: string): Promise<string> =>
    new Promise((resolve) => {
      let text = '';
      const socket = connect(bench.amt.port, bench.amt.host, () => socket.write(bytes));
      socket.on('data', (chunk) => (text += chunk.toString())).on('error', () => undefined).on('close', () => resolve(text));
    });

  test('a request without credentials gets AMT’s 401: HTML, quoted stale, the connection closed', async () => {
    await start({ faults: { qopProfile: 'auth-int, auth' } });
    const answer = await raw('POST /wsman HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/WWW-Authenticate: Digest realm="Digest:[0-9A-F]{32}", nonce="[A-Za-z0-9+/]{32}",stale="false",qop="auth-int, auth"\r\n/);
    expect(answer).toMatch(/Content-Type: text\/html\r\n[^]*Connection: close\r\n[^]*<!DOCTYPE HTML/);
  });
  test.each([
    ['an empty realm and nonce, as open-amt’s Go client begins', 'Digest username="admin",realm="",nonce="",uri="/wsman",response="x"', 401],
    ['Basic', 'Basic YWRtaW46eA==', 401],
    ['nonsense', 'Digest ,,,=', 401],
  ])('credentials that are %s get a challenge', async (_name, authorization, status) => {
    await start();
    expect(await raw(`POST /wsman HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Length: 0\r\n\r\n`)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
  test.each([
    ['bytes that are no HTTP', '\x16\x03\x01\x00\x00', ''],
    ['a megabyte of body', `POST /wsman HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(1_000_000)}`, ''],
    ['another path', 'GET /logon.htm HTTP/1.1\r\nHost: x\r\n\r\n', 'HTTP/1.1 404'],
    ['GET', 'GET /wsman HTTP/1.1\r\nHost: x\r\n\r\n', 'HTTP/1.1 405'],
  ])('%s cannot take it down', async (_name, bytes, begin) => {
    const { open } = await start();
    expect((await raw(bytes)).slice(0, 12)).toBe(begin);
    expect(await open().observePower()).toMatchObject({ kind: 'read' });
  });
  test('a taken port is port_in_use', async () => {
    const { amt } = await start();
    const second = startAmtSimulator({ machineUuid: MACHINE_UUID, port: amt.port, power: { powerOn: () => undefined, powerOff: () => undefined }, log: silentLogger() });
    await expect(second).rejects.toMatchObject({ code: 'port_in_use', details: { why: 'EADDRINUSE' } });
  });
  test('a machine that fails does not take it down', async () => {
    const { amt, open } = await start({ power: { powerOn: () => Promise.reject(new Error('no such disk')), powerOff: () => undefined } });
    expect(await open().powerOn()).toEqual({ kind: 'accepted' });
    await amt.settled();
    expect(await open().observePower()).toEqual({ kind: 'read', power: 'on' });
  });
});

describe('curl, which is nobody’s AMT client', () => {
  /** @returns HTTP status and body */
  const curl = (body: string, password = CREDENTIALS.password): Promise<string> =>
    new Promise((resolve, reject) => {
      const args = ['--silent', '--max-time', '100', '--noproxy', '*', '--digest', '--user', `admin:${password}`, '--header', 'Content-Type: application/soap+xml', '--data-binary', '@-', '--write-out', '\n%{http_code}', bench.amt.url];
      const child = execFile('curl', args, (error, stdout) => (error ? reject(error) : resolve(stdout)));
      child.stdin!.end(body);
    });

  test.each(['auth', 'auth-int, auth'] as const)('reads and changes the power with qop="%s" (failure mode 8)', async (qopProfile) => {
    const { amt } = await start({ faults: { qopProfile } });
    expect(await curl(envelope(GET, `${CIM}CIM_AssociatedPowerManagementService`))).toMatch(/PowerState>8<[^]*\n200$/);
    expect(await curl(power(2))).toMatch(/ReturnValue>0<[^]*\n200$/);
    expect(amt.power()).toBe('on');
  });
  test('with the wrong password gets no further than 401', async () => {
    const { amt } = await start();
    expect(await curl(power(2), 'wrong')).toMatch(/\n401$/);
    expect([amt.power(), amt.counts().byValue]).toEqual(['off-soft', {}]);
  });
});
