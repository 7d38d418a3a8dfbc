/** Two Python clients, written by others and never for us, drive the simulator: what they take for an AMT, our driver may too. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { CREDENTIALS, startAmtBench, type AmtBench } from '../support/amt.js';

const run = promisify(execFile);
const ROOT = join(__dirname, '..', '..');
const VENV = join(ROOT, '.tools', 'amt-venv');
const PYTHON = join(VENV, 'bin', 'python');
const PACKAGES = ['amt==0.8.0', 'powerctl==0.1.3'];

jest.setTimeout(30_000);

beforeAll(async () => {
  if (!existsSync(PYTHON)) await run('python3', ['-m', 'venv', VENV], { timeout: 60_000 });
  const installed = await run(PYTHON, ['-c', 'import amt.client, powerctl.drivers.amt']).then(() => true, () => false);
  if (!installed) await run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES], { timeout: 100_000 });
}, 180_000);

let bench: AmtBench;
const start = async (options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench(options));
afterEach(() => bench.close());

interface Ended {
  readonly exit: number;
  readonly out: string;
}

async function client(script: 'sdague' | 'powerctl', command: string, password = CREDENTIALS.password): Promise<Ended> {
  const args = [join(ROOT, 'test', 'support', 'amt-clients', `${script}_cli.py`), command, '--host', bench.amt.host, '--port', String(bench.amt.port), '--password', password];
  try {
    const { stdout } = await run(PYTHON, args, { timeout: 20_000, env: { PATH: process.env['PATH'], no_proxy: '127.0.0.1', PYTHONDONTWRITEBYTECODE: '1' } });
    return { exit: 0, out: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { exit: code, out: stdout + stderr };
  }
}

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
