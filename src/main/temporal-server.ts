/** The embedded Temporal dev server: found, started on free ports with the settings we measured, and stopped. */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, createWriteStream, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { MetalflowError } from '../domain/errors.js';
import { SEARCH_ATTRIBUTES } from '../contracts/messages.js';
import type { Logger } from '../telemetry/log.js';

/** 50 ms a hop and 1 s a short timer are server limits, not the SDK's; these lift them (docs/benchmarks.md). */
export const DYNAMIC_CONFIG: Readonly<Record<string, string>> = {
  'history.transferProcessorMaxPollRPS': '2000',
  'history.timerProcessorMaxPollRPS': '2000',
  'history.visibilityProcessorMaxPollRPS': '2000',
  'history.timerProcessorMaxTimeShift': '"1ms"',
  'frontend.WorkflowPauseEnabled': 'true',
};

export interface TemporalServer {
  readonly address: string;
  readonly ui: string;
  readonly pid: number;
  close(): Promise<void>;
}

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** METALFLOW_TEMPORAL_CLI, PATH, .tools/; null leaves the SDK's own download. @throws setting_invalid for a setting that is no program */
export function findTemporalCli(setting: string | null, path: string): string | null {
  if (setting) {
    if (isProgram(setting)) return setting;
    throw new MetalflowError('setting_invalid', { name: 'METALFLOW_TEMPORAL_CLI', why: `${setting} is no program` });
  }
  const onPath = path.split(delimiter).filter(Boolean).map((folder) => join(folder, 'temporal')).find(isProgram);
  const tools = join(ROOT, '.tools', 'temporal-venv', 'bin', 'temporal');
  return onPath ?? (isProgram(tools) ? tools : null);
}

export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** A port that was drawn may be somebody's by the time the server wants it: one that ends while it comes up is started again, on others. */
const STARTS = 3;

export interface TemporalServerOptions {
  readonly cli: string | null;
  /** 0 draws one that is free. */
  readonly port: number;
  readonly uiPort: number;
  readonly dbFile: string | null;
  readonly logFile: string;
  readonly log: Logger;
}

/** @throws temporal_cli_missing, temporal_unavailable */
export async function startTemporalServer(options: TemporalServerOptions): Promise<TemporalServer> {
  if (!options.cli) throw new MetalflowError('temporal_cli_missing');
  mkdirSync(dirname(options.logFile), { recursive: true });
  for (let starts = 1; ; starts++) {
    const started = await start(options.cli, options);
    if (started.kind === 'up') return started.server;
    if (started.kind === 'silent' || starts === STARTS) throw new MetalflowError('temporal_unavailable', { why: `the dev server did not come up on ${started.address}; see ${options.logFile}` });
  }
}

type Started = { readonly kind: 'up'; readonly server: TemporalServer } | { readonly kind: 'ended' | 'silent'; readonly address: string };

async function start(cli: string, options: TemporalServerOptions): Promise<Started> {
  const port = options.port || (await freePort());
  const uiPort = options.uiPort || (await freePort());
  const args = [
    'server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort),
    '--http-port', String(await freePort()), '--metrics-port', String(await freePort()), '--log-level', 'warn',
    ...(options.dbFile ? ['--db-filename', options.dbFile] : []),
    ...Object.values(SEARCH_ATTRIBUTES).flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
    ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ];
  const child = spawn(cli, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: false });
  const sink = createWriteStream(options.logFile, { flags: 'a' });
  // A full disk does not end the house.
  sink.on('error', (error) => options.log.warn({ file: options.logFile, error: error.message }, 'the log of the Temporal dev server cannot be written'));
  child.stdout.pipe(sink, { end: false });
  child.stderr.pipe(sink, { end: false });
  const exited = new Promise<number | null>((resolve) => {
    // Not `exit`: what it said last may be on its way to the log still.
    child.once('close', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  const address = `127.0.0.1:${port}`;
  const state = await waitUntilReady(address, child, exited);
  if (state !== 'up') {
    child.kill('SIGKILL');
    await exited;
    sink.end();
    return { kind: state, address };
  }
  options.log.info({ address, ui: `http://127.0.0.1:${uiPort}` }, 'Temporal dev server is up');
  return {
    kind: 'up',
    server: {
      address,
      ui: `http://127.0.0.1:${uiPort}`,
      pid: child.pid!,
      async close() {
        // A second server on the same file before this one is gone would find it locked.
        child.kill('SIGTERM');
        const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
        await exited;
        clearTimeout(timer);
        sink.end();
      },
    },
  };
}

async function waitUntilReady(address: string, child: ChildProcess, exited: Promise<number | null>): Promise<'up' | 'ended' | 'silent'> {
  let isGone = false;
  void exited.then(() => (isGone = true));
  for (let tries = 0; tries < 150; tries++) {
    if (isGone || child.exitCode !== null) return 'ended';
    try {
      const connection = await Connection.connect({ address, connectTimeout: '1s' });
      await connection.workflowService.getSystemInfo({});
      await connection.workflowService.describeNamespace({ namespace: 'default' });
      await connection.close();
      // Whoever answers must be the child we started, not another server on the port.
      return isGone ? 'ended' : 'up';
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  return 'silent';
}
