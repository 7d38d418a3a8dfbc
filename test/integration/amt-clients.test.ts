/** Two Python clients, written by others and never for us, drive the simulator: what they take for an AMT, our driver may too. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { CREDENTIALS, startAmtBench, type AmtBench } from '../support/amt.js';
import { installPythonClients, runPythonClient, type Ended } from '../support/amt-clients.js';
import { CIM, envelope, GET, power } from '../support/amt-wire.js';
import { until } from '../support/until.js';
import { startSimulateAmt, type SimulateAmtProcess } from '../support/simulate-amt.js';

beforeAll(installPythonClients);

let bench: AmtBench;
const start = async (options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench(options));
afterEach(() => bench?.close());

const client = (script: 'sdague' | 'powerctl', command: string, password = CREDENTIALS.password, port = bench.amt.port): Promise<Ended> =>
  runPythonClient(`${script}_cli.py`, [command, '--host', '127.0.0.1', '--port', String(port), '--password', password]);

describe.each(['chunked', 'length'] as const)('PyPI amt (answers: %s)', (framing) => {
  test('reads, arms, powers on from the network once, and powers off', async () => {
    const { amt, machine } = await start({ faults: { framing } });
    expect(await client('sdague', 'status')).toEqual({ exit: 0, out: '8 off\n' });
    expect(await client('sdague', 'pxe')).toEqual({ exit: 0, out: 'armed\n' });
    expect(amt.armed().boot).toBe('network');
    expect(await client('sdague', 'on')).toEqual({ exit: 0, out: 'accepted\n' });
    expect(await client('sdague', 'status')).toEqual({ exit: 0, out: '2 on\n' });
    expect(await client('sdague', 'cycle')).toEqual({ exit: 0, out: 'accepted\n' });
    expect(await client('sdague', 'off')).toEqual({ exit: 0, out: 'accepted\n' });
    await amt.settled();
    expect(machine).toEqual(['on network', 'off', 'on disk', 'off']);
    expect(amt.counts().byValue).toEqual({ 2: 1, 5: 1, 8: 1 });
  });
});

test('PyPI amt sees a refusal: on while on (sdague/amt#28)', async () => {
  await start({ initialPower: 'on' });
  expect(await client('sdague', 'on')).toMatchObject({ exit: 2, out: expect.stringContaining('refused') });
});

test('PyPI amt with the wrong password is refused', async () => {
  const { amt } = await start();
  expect((await client('sdague', 'on', 'wrong')).out).toContain('401');
  expect(amt.counts().byValue).toEqual({});
});

test('powerctl reads, powers on, resets and powers off', async () => {
  const { amt, machine } = await start();
  expect((await client('powerctl', 'status')).out).toMatch(/off/i);
  for (const command of ['on', 'reset', 'off']) expect(await client('powerctl', command)).toMatchObject({ exit: 0 });
  await amt.settled();
  expect(machine).toEqual(['on disk', 'off', 'on disk', 'off']);
  expect(amt.counts().byValue).toEqual({ 2: 1, 8: 1, 10: 1 });
});

test('both fail on the qop list of AMT 14 and later, where our driver does not (failure mode 8, A1)', async () => {
  const { open } = await start({ faults: { qopProfile: 'auth-int, auth' } });
  expect((await client('sdague', 'status')).exit).not.toBe(0);
  expect((await client('powerctl', 'status')).exit).not.toBe(0);
  expect(await open().observePower()).toEqual({ kind: 'read', power: 'off-soft' });
});

describe('`metalflow simulate amt`, as an operator starts it', () => {
  let simulator: SimulateAmtProcess | null = null;
  afterEach(async () => void (await simulator?.stop()));

  test('is a fleet with the documented credentials, which the Python clients drive, and ends with 0 at a signal', async () => {
    simulator = await startSimulateAmt('--count', '2');
    const ports = simulator.endpoints.map(({ port }) => port);
    expect(await client('sdague', 'status', 'P@ssw0rd1', ports[0])).toEqual({ exit: 0, out: '2 on\n' });
    expect(await client('sdague', 'off', 'P@ssw0rd1', ports[0])).toMatchObject({ exit: 0 });
    for (const command of ['pxe', 'on']) expect(await client('sdague', command, 'P@ssw0rd1', ports[0])).toMatchObject({ exit: 0 });
    expect(await client('powerctl', 'off', 'P@ssw0rd1', ports[1])).toMatchObject({ exit: 0 });
    const control = simulator.control;
    const endpoints = await until('both to have done what they were told', async () => {
      const told = (await (await fetch(`${control}api/endpoints`)).json()) as { endpoints: { power: string; counts: object }[] };
      return told.endpoints[0]?.power === 'on' && told.endpoints[1]?.power === 'off-soft' && told.endpoints;
    });
    expect(endpoints).toMatchObject([{ power: 'on', counts: { powerCommands: { 8: 1, 2: 1 } } }, { power: 'off-soft', counts: { powerCommands: { 8: 1 } } }]);
    expect(await simulator.stop()).toBe(0);
  });

  test.each(['auth', 'auth-int, auth'])('speaks TLS to curl, which trusts its certificate alone, with qop="%s"', async (qop) => {
    simulator = await startSimulateAmt('--tls', '--fault', `qopProfile=${qop}`);
    const [{ amt, port, fingerprint }] = simulator.endpoints as [SimulateAmtProcess['endpoints'][number]];
    const certificate = await new Promise<{ raw: Buffer; fingerprint256: string }>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate());
        socket.destroy();
      });
      socket.on('error', reject);
    });
    expect(certificate.fingerprint256).toBe(fingerprint);
    const folder = await mkdtemp(join(tmpdir(), 'metalflow-curl-'));
    const authority = join(folder, 'amt.pem');
    await writeFile(authority, `-----BEGIN CERTIFICATE-----\n${certificate.raw.toString('base64')}\n-----END CERTIFICATE-----\n`);
    const curl = async (body: string): Promise<string> =>
      (await promisify(execFile)('curl', ['--silent', '--show-error', '--max-time', '120', '--noproxy', '*', '--cacert', authority, '--digest', '--user', 'admin:P@ssw0rd1', '--header', 'Content-Type: application/soap+xml', '--data-binary', body, amt])).stdout;
    expect(await curl(envelope(GET, `${CIM}CIM_AssociatedPowerManagementService`))).toContain('PowerState>2<');
    expect(await curl(power(8))).toContain('ReturnValue>0<');
    await rm(folder, { recursive: true });
  });
});
