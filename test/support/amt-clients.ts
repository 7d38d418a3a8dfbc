/** Two Python clients of AMT, in a venv of the tests under .tools: PyPI `amt` and `powerctl`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(__dirname, '..', '..');
const VENV = join(ROOT, '.tools', 'amt-venv');
const PYTHON = join(VENV, 'bin', 'python');
const PACKAGES = ['amt==0.8.0', 'powerctl==0.1.3'];

/** Some minutes the first time. @throws when Debian's python3-venv is missing */
export async function installPythonClients(): Promise<void> {
  if (!existsSync(PYTHON)) {
    await run('python3', ['-m', 'venv', VENV], { timeout: 240_000 }).catch((error: Error) => {
      throw new Error(`no venv for the Python clients; install the Debian package python3-venv (${error.message})`);
    });
  }
  const installed = await run(PYTHON, ['-c', 'import amt.client, powerctl.drivers.amt']).then(() => true, () => false);
  if (!installed) await run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES], { timeout: 280_000 });
}

export interface Ended {
  readonly exit: number;
  readonly out: string;
}

/** Runs one of test/support/amt-clients/*.py. */
export async function runPythonClient(script: string, args: readonly string[], timeout = 120_000): Promise<Ended> {
  try {
    const { stdout } = await run(PYTHON, [join(__dirname, 'amt-clients', script), ...args], { timeout, env: { PATH: process.env['PATH'], no_proxy: '127.0.0.1', PYTHONDONTWRITEBYTECODE: '1' } });
    return { exit: 0, out: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { exit: code, out: stdout + stderr };
  }
}
