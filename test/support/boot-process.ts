/** `metalflow boot` as a process of its own over a folder and a store that the test fills: the real gate, the real server. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createStore, openDatabase, type Store } from '../../src/store/index.js';
import type { UnknownMacPolicy } from '../../src/contracts/boot.js';
import { reservePorts } from './ports.js';
import { deviceOf } from './store-bench.js';
import { until } from './until.js';

export interface BootProcess {
  readonly pid: number;
  readonly tftpPort: number;
  readonly httpUrl: string;
  readonly syslogPort: number;
  readonly dir: string;
  readonly databaseFile: string;
  /** Of the process now, from /proc: bytes, bytes at its highest, open sockets, milliseconds of CPU. */
  usage(): { readonly rss: number; readonly peak: number; readonly sockets: number; readonly cpuMs: number };
  log(): string;
  isRunning(): boolean;
  stop(): Promise<void>;
}

export interface BootProcessOptions {
  readonly unknownMac?: UnknownMacPolicy;
  /** Files of the TFTP root and of the assets folder. */
  readonly tftp?: Readonly<Record<string, Buffer>>;
  readonly assets?: Readonly<Record<string, Buffer>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Fills the store before the process opens it. */
  readonly store?: (store: Store) => Promise<void>;
}

const ANY_TEMPORAL = { look: async () => ({ kind: 'running' as const, runId: 'temporal-run' }) };

export async function startBootProcess(options: BootProcessOptions = {}): Promise<BootProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'metalflow-boot-process-'));
  for (const [folder, files] of [['tftp', options.tftp], ['assets', options.assets]] as const) {
    await mkdir(join(dir, folder), { recursive: true });
    for (const [name, bytes] of Object.entries(files ?? {})) {
      await mkdir(dirname(join(dir, folder, name)), { recursive: true });
      await writeFile(join(dir, folder, name), bytes);
    }
  }
  const databaseFile = join(dir, 'metalflow.db');
  if (options.store) {
    const store = createStore({ db: await openDatabase(`sqlite:${databaseFile}`), temporal: ANY_TEMPORAL });
    await store.installation.begin('installation-a');
    await store.installation.confirm();
    await options.store(store);
    await store.close();
  }
  const [tftpPort, httpPort, syslogPort] = (await reservePorts(3)) as [number, number, number];
  const env = {
    PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', METALFLOW_DATA_DIR: dir, METALFLOW_UNKNOWN_MAC: options.unknownMac ?? 'disk', METALFLOW_LOG_LEVEL: 'warn',
    METALFLOW_TFTP_PORT: String(tftpPort), METALFLOW_BOOT_HTTP_PORT: String(httpPort), METALFLOW_SYSLOG_PORT: String(syslogPort), ...options.env,
  };
  const child = spawn(process.execPath, ['--enable-source-maps', join(process.cwd(), 'dist', 'bin.js'), 'boot'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-100_000)));
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const httpUrl = `http://127.0.0.1:${httpPort}`;
  const stop = async (): Promise<void> => {
    if (isRunning()) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
    await exited.finally(() => clearTimeout(timer));
    await rm(dir, { recursive: true, force: true });
  };
  const isUp = await until('the boot role is up', async () => !isRunning() || (await fetch(`${httpUrl}/readyz`)).ok).then(isRunning, () => false);
  if (!isUp) {
    await stop();
    throw new Error(`the boot role does not come up:\n${log}`);
  }
  const proc = `/proc/${child.pid}`;
  return {
    pid: child.pid!, tftpPort, httpUrl, syslogPort, dir, databaseFile, isRunning, stop,
    log: () => log,
    usage() {
      const status = readFileSync(`${proc}/status`, 'utf8');
      const kilobytes = (name: string): number => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)![1]);
      const times = readFileSync(`${proc}/stat`, 'utf8').split(') ')[1]!.split(' ');
      return { rss: kilobytes('VmRSS'), peak: kilobytes('VmHWM'), sockets: readdirSync(`${proc}/fd`).length, cpuMs: 10 * (Number(times[11]) + Number(times[12])) };
    },
  };
}

/** A device in the store, with an open run that may boot when `permitted`. */
export async function declareNode(store: Store, id: string, mac: string, state: 'active' | 'provisioning' | 'available', permitted: boolean, addresses: readonly string[] = []): Promise<string | null> {
  await store.devices.register(deviceOf({ id, name: `node-${id}`, macs: [mac], addresses: [...addresses] }), { state, adopted: false });
  if (!permitted) return null;
  const { run, workflowId } = await store.runs.open(id, 'provision', { asked: { how: 'netbox' }, intake: null });
  const ref = { deviceId: id, run, workflowId, temporalRunId: 'temporal-run' };
  await store.fence.enter(ref);
  const { bootAttempt } = await store.attempts.open(ref);
  await store.permissions.lease(ref, bootAttempt, 3600);
  return bootAttempt;
}
