/**
 * sushy-tools' Redfish emulator (PyPI, in a virtual environment under .tools/) with its fake driver: a Redfish service by other people,
 * without machines behind it. Its power changes 1 to 11 s after it was asked.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reservePort } from './ports.js';
import { until } from './until.js';

const run = promisify(execFile);
const VENV = join(__dirname, '..', '..', '.tools', 'sushy-venv');
const PYTHON = join(VENV, 'bin', 'python');
const EMULATOR = join(VENV, 'bin', 'sushy-emulator');
const PACKAGE = 'sushy-tools==2.2.0';

/** Some minutes the first time. */
export async function installSushy(): Promise<void> {
  if (!existsSync(PYTHON)) await run('python3', ['-m', 'venv', VENV], { timeout: 240_000 });
  const installed = await run(PYTHON, ['-c', 'import sushy_tools, bcrypt']).then(() => true, () => false);
  if (!installed) await run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE, 'bcrypt'], { timeout: 280_000 });
}

export interface SushyEmulator {
  readonly port: number;
  close(): Promise<void>;
}

export interface SushyOptions {
  readonly systems: readonly { readonly uuid: string; readonly name: string }[];
  /** HTTP Basic, the only one it has; without, it lets anybody in. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Served over TLS: files with PEM. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

const accepts = (port: number): Promise<boolean> => fetch(`http://127.0.0.1:${port}/redfish/v1/`).then(() => true, (error: { cause?: { code?: string } }) => error.cause?.code !== 'ECONNREFUSED');

export async function startSushy({ systems, credentials, tls }: SushyOptions): Promise<SushyEmulator> {
  const folder = await mkdtemp(join(tmpdir(), 'metalflow-sushy-'));
  const port = await reservePort();
  const settings: Record<string, unknown> = {
    LISTEN_IP: '127.0.0.1', LISTEN_PORT: port, FAKE_DRIVER: true, STATE_DIR: folder, FEATURE_SET: 'full',
    FAKE_SYSTEMS: systems.map(({ uuid, name }) => ({ uuid, name, power_state: 'Off', nics: [{ mac: '52:54:00:12:34:56', ip: '127.0.0.2' }] })),
  };
  if (credentials) {
    const hash = (await run(PYTHON, ['-c', 'import bcrypt, os; print(bcrypt.hashpw(os.environ["PASSWORD"].encode(), bcrypt.gensalt(4)).decode())'], { env: { PASSWORD: credentials.password } })).stdout.trim();
    await writeFile(join(folder, 'htpasswd'), `${credentials.username}:${hash}\n`);
    settings['AUTH_FILE'] = join(folder, 'htpasswd');
  }
  if (tls) Object.assign(settings, { SSL_CERT: tls.certFile, SSL_KEY: tls.keyFile });
  // Its configuration is Python, of which JSON is nearly a part.
  const python = (value: unknown): string => (value === true ? 'True' : JSON.stringify(value));
  await writeFile(join(folder, 'emulator.conf'), Object.entries(settings).map(([name, value]) => `SUSHY_EMULATOR_${name} = ${python(value)}\n`).join(''));
  const emulator: ChildProcess = spawn(EMULATOR, ['--config', join(folder, 'emulator.conf')], { stdio: 'ignore', env: { PATH: '/usr/bin:/bin', PYTHONDONTWRITEBYTECODE: '1' } });
  const ended = new Promise<void>((resolve) => void emulator.once('close', () => resolve()));
  const close = async (): Promise<void> => {
    emulator.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const isUp = await until('sushy-emulator accepts', async () => emulator.exitCode !== null || accepts(port)).then(() => emulator.exitCode === null, () => false);
  if (!isUp) {
    await close();
    throw new Error('sushy-emulator does not start');
  }
  return { port, close };
}
