/** A PostgreSQL of a test's own, on a free port of loopback, in a folder that goes with it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reservePort } from './ports.js';

const ROOT = '/usr/lib/postgresql';

function programs(): string {
  try {
    return join(ROOT, readdirSync(ROOT).sort().at(-1)!, 'bin');
  } catch {
    throw new Error('there is no PostgreSQL: install the Debian package postgresql');
  }
}

export interface Postgres {
  readonly url: string;
  close(): void;
}

export async function startPostgres(): Promise<Postgres> {
  const bin = programs();
  const isRoot = process.getuid?.() === 0;
  // Root's own temporary folder may be closed to the user that PostgreSQL runs as.
  const folder = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'metalflow-postgres-'));
  // It refuses to run as root; Debian's package brings a user for it.
  const run = (program: string, ...args: string[]): void => {
    const words = [join(bin, program), ...args];
    const [first, ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...words] : words;
    execFileSync(first!, rest, { stdio: ['ignore', 'ignore', 'inherit'], cwd: folder, timeout: 120_000 });
  };
  if (isRoot) execFileSync('chown', ['postgres', folder]);
  chmodSync(folder, 0o700);
  const data = join(folder, 'data');
  try {
    run('initdb', '-D', data, '-A', 'trust', '-U', 'metalflow', '-N');
    const port = await reservePort();
    run('pg_ctl', '-D', data, '-o', `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off`, '-l', join(folder, 'log'), '-w', '-t', '100', 'start');
    return {
      url: `postgres://metalflow:a-password@127.0.0.1:${port}/postgres`,
      close() {
        run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop');
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
