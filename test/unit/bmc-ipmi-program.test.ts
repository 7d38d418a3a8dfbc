/** How ipmitool is run: what it is given, and how it is ended. Scripts stand in for it. */
import { EventEmitter } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProgram, type ProgramEnd } from '../../src/bmc/ipmi/program.js';
import { outOfTime } from '../support/held-time.js';
import { until } from '../support/until.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'metalflow-ipmitool-'))));
afterEach(() => rm(folder, { recursive: true }));

async function script(text: string): Promise<string> {
  const path = join(folder, 'ipmitool');
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
  return path;
}
const run = (path: string, { limitMs = 120_000, signal = new AbortController().signal, args = ['-H', '10.0.0.9'] as readonly string[] } = {}): Promise<ProgramEnd> => createProgram(path)({ args, password: 'hunter2', limitMs, signal });
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('its environment is a path, a locale and the password; nothing of ours', async () => {
  const end = await run(await script('env | sort; echo "$@"; echo warned >&2; exit 3'));
  expect(end).toMatchObject({ kind: 'ended', exit: 3, stderr: 'warned\n' });
  const { stdout } = end as { stdout: string };
  const names = [...stdout.matchAll(/^(\w+)=/gm)].map(([, name]) => name).filter((name) => !['PWD', '_', 'OLDPWD', 'SHLVL'].includes(name!));
  expect(names).toEqual(['IPMI_PASSWORD', 'LC_ALL', 'PATH']);
  expect(stdout).toContain('IPMI_PASSWORD=hunter2\n');
  expect(stdout).toContain('-H 10.0.0.9\n');
});
test('an argument that a shell would read is just an argument', async () => {
  const end = await run(await script('printf "%s|" "$@"'), { args: ['$(touch /tmp/x)', '; rm -rf /', 'a b'] });
  expect(end).toMatchObject({ stdout: '$(touch /tmp/x)|; rm -rf /|a b|' });
});
test('one that does not end is ended by its pid, and what it had said is kept', async () => {
  const pidFile = join(folder, 'pid');
  const path = await script(`echo $$ > ${pidFile}; echo said; : > ${pidFile}.said; exec sleep 600`);
  const end = await outOfTime(12_000, () => run(path, { limitMs: 12_000 }), () => existsSync(`${pidFile}.said`));
  expect(end).toEqual({ kind: 'cut-off', why: 'no end within 12000 ms', stdout: 'said\n', stderr: '' });
  expect(isAlive(Number(await readFile(pidFile, 'utf8')))).toBe(false);
});
test('one that runs when the conversation is closed is ended', async () => {
  const pidFile = join(folder, 'pid');
  const closed = new AbortController();
  const running = run(await script(`echo $$ > ${pidFile}; exec sleep 600`), { signal: closed.signal });
  await until('it runs', async () => (await readFile(pidFile, 'utf8')) !== '');
  closed.abort();
  expect(await running).toMatchObject({ kind: 'cut-off', why: expect.stringContaining('given up') });
  expect(isAlive(Number(await readFile(pidFile, 'utf8')))).toBe(false);
});
test('one that pours out megabytes is read to its end and kept in part', async () => {
  const end = await run(await script('head -c 5000000 /dev/zero | tr "\\0" x'));
  expect(end).toMatchObject({ kind: 'ended', exit: 0 });
  expect((end as { stdout: string }).stdout).toHaveLength(64 * 1024);
});
test('one that is not there, or may not be run, is missing', async () => {
  expect(await run(join(folder, 'nothing'))).toEqual({ kind: 'missing' });
  await writeFile(join(folder, 'plain'), 'x');
  expect(await run(join(folder, 'plain'))).toEqual({ kind: 'missing' });
});
describe('one that this host cannot start was not started, and nothing is thrown', () => {
  const emptyChild = (): ChildProcess => Object.assign(new EventEmitter(), { pid: undefined, kill: () => false }) as unknown as ChildProcess;
  test.each<[string, () => ChildProcess]>([
    ['when spawn throws', () => { throw Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' }); }],
    ['when spawn gives a child without streams', () => {
      const child = emptyChild();
      process.nextTick(() => child.emit('error', Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })));
      return child;
    }],
  ])('%s', async (_name, start) => {
    expect(await createProgram('ipmitool', start)({ args: [], password: 'hunter2', limitMs: 10_000, signal: new AbortController().signal })).toEqual({ kind: 'not-started', why: 'ipmitool could not be started: EMFILE' });
  });
});
