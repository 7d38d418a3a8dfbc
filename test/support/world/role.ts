/** One role as a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

export interface RoleProcess {
  readonly pid: number;
  readonly exited: Promise<number | null>;
  log(): string;
  stop(): Promise<number | null>;
}

export function startRole(role: 'worker' | 'boot' | 'agentapi' | 'operatorapi', env: Readonly<Record<string, string>>): RoleProcess {
  const child = spawn(process.execPath, ['--enable-source-maps', join(process.cwd(), 'dist', 'bin.js'), role], { env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-100_000)));
  // Not `exit`: what it said last may still be on its way then.
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  return {
    pid: child.pid!,
    exited,
    log: () => log,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
      return exited.finally(() => clearTimeout(timer));
    },
  };
}
