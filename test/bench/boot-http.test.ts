/** What the boot plane gives out over HTTP: scripts to a fleet that starts at once, and images beside nginx, with the same client in the same run. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/store/index.js';
import { reservePorts } from '../support/ports.js';
import { until } from '../support/until.js';
import { startRole } from '../support/world/role.js';
import { percentile, printFigures } from './print.js';

const MIB = 1024 * 1024;
const IMAGE_MIB = 64;
const NODES = 500;
const KERNEL_MIB = 2;
const SECONDS = 4;
const CONNECTIONS = [4, 64];

const dir = mkdtempSync(join(tmpdir(), 'metalflow-bench-'));
const at = (...parts: string[]): string => join(dir, ...parts);
const mac = (node: number): string => `02:00:00:00:${(node >> 8).toString(16).padStart(2, '0')}:${(node & 255).toString(16).padStart(2, '0')}`;

/** Figures of a process, from /proc: MiB resident now and at most. */
function memory(pid: number): { readonly now: number; readonly most: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string): number => Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1024);
  return { now: mib('VmRSS'), most: mib('VmHWM') };
}

/** The pids of a process and its children. */
const family = (pid: number): number[] => [pid, ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)];

const untilAnswers = (url: string): Promise<boolean> => until(`${url} answers`, async () => (await fetch(url)).ok);

/** wrk in a process of its own. @returns MB/s */
async function throughput(url: string, connections: number): Promise<number> {
  const client = spawn('wrk', ['-t', '1', '-c', String(connections), '-d', `${SECONDS}s`, '--timeout', '30s', url], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  client.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await new Promise((resolve) => client.once('close', resolve));
  const [, figure, unit] = /Transfer\/sec:\s+([\d.]+)([KMG])B/.exec(said) ?? [];
  if (figure === undefined) throw new Error(`wrk said: ${said}`);
  return (Number(figure) * { K: 1024, M: MIB, G: 1024 * MIB }[unit as 'K' | 'M' | 'G']) / 1e6;
}

/** One GET over a connection and from an address of its own, as a firmware makes it. @returns ms to the last byte */
function get(base: string, path: string, node: number): Promise<{ readonly ms: number; readonly status: number }> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    request(`${base}${path}`, { agent: false, localAddress: `127.1.${node >> 8}.${node & 255}` }, (answer) => {
      answer.resume().on('end', () => resolve({ ms: performance.now() - began, status: answer.statusCode! })).on('error', reject);
    }).on('error', reject).end();
  });
}

async function startNginx(port: number): Promise<ChildProcess> {
  mkdirSync(at('nginx'));
  writeFileSync(at('nginx.conf'), `daemon off; user root; worker_processes auto; pid ${at('nginx', 'pid')}; error_log ${at('nginx', 'error.log')};
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path ${at('nginx', 'b')}; proxy_temp_path ${at('nginx', 'p')}; fastcgi_temp_path ${at('nginx', 'f')}; uwsgi_temp_path ${at('nginx', 'u')}; scgi_temp_path ${at('nginx', 's')};
server { listen 127.0.0.1:${port}; root ${dir}; } }\n`);
  return spawn('nginx', ['-c', at('nginx.conf'), '-e', at('nginx', 'error.log'), '-p', at('nginx')], { stdio: 'inherit' });
}

/** Declared devices that wait for a request: each asks the store as a run's does, and is given the netboot system. */
async function fill(): Promise<void> {
  const db = await openDatabase(`sqlite:${at('metalflow.db')}`);
  const now = new Date().toISOString();
  for (let node = 0; node < NODES; node++) {
    const id = String(node + 1);
    await db.insertInto('device').values({ device_id: id, name: `node-${id}`, site: 'default', state: 'available', state_since: now, power: 'off', adopted: 0, allow_unproven: 0, next_run: 1, adopted_epoch: 0 } as never).execute();
    await db.insertInto('device_mac').values({ device_id: id, mac: mac(node) } as never).execute();
  }
  await db.destroy();
}

afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('scripts to a fleet at once, and images beside nginx', async () => {
  for (const [program, debianPackage] of [['nginx', 'nginx-light'], ['wrk', 'wrk']] as const) {
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0 && !existsSync(`/usr/sbin/${program}`)) throw new Error(`${program} is missing: apt-get install ${debianPackage}`);
  }
  mkdirSync(at('assets', 'images'), { recursive: true });
  const image = Buffer.alloc(IMAGE_MIB * MIB, createHash('sha256').update('image').digest());
  writeFileSync(at('assets', 'images', 'node.raw'), image);
  writeFileSync(at('assets', 'vmlinuz-x86_64'), image.subarray(0, KERNEL_MIB * MIB));
  await fill();
  const [port, peer] = (await reservePorts(2)) as [number, number];
  const boot = startRole('boot', { METALFLOW_DATA_DIR: dir, METALFLOW_TFTP_ROOT: dir, METALFLOW_TFTP_PORT: '0', METALFLOW_SYSLOG_PORT: '0', METALFLOW_BOOT_HTTP_PORT: String(port), METALFLOW_LOG_LEVEL: 'warn' });
  const nginx = await startNginx(peer);
  const base = `http://127.0.0.1:${port}`;
  const figures: Record<string, string> = {};
  try {
    await untilAnswers(`${base}/readyz`);
    await untilAnswers(`http://127.0.0.1:${peer}/assets/vmlinuz-x86_64`);
    // The digests are taken, and both have the files in the page cache.
    await untilAnswers(`${base}/assets/images/SHA256SUMS`);

    for (const [name, kernel] of [['first scripts', false], ['scripts again', false], [`scripts while all fetch a kernel of ${KERNEL_MIB} MiB`, true]] as const) {
      const nodes = Array.from({ length: NODES }, (_, node) => node);
      const kernels = kernel ? nodes.map((node) => get(base, `/assets/vmlinuz-x86_64?mac=${mac(node)}`, node)) : [];
      const scripts = await Promise.all(nodes.map((node) => get(base, `/ipxe/script/${mac(node)}/auto.ipxe`, node)));
      expect(scripts.filter(({ status }) => status !== 200)).toEqual([]);
      expect((await Promise.all(kernels)).filter(({ status }) => status !== 200)).toEqual([]);
      const ms = scripts.map((script) => script.ms);
      figures[`${NODES} nodes at once: ${name}`] = `p50 ${percentile(ms, 0.5).toFixed(0)} ms, p99 ${percentile(ms, 0.99).toFixed(0)} ms; boot plane ${memory(boot.pid).now} MiB`;
    }
    // Arrivals of a fleet that a run brings up: 100 a second.
    const paced: Promise<{ ms: number }>[] = [];
    for (let node = 0; node < NODES; node++) {
      paced.push(get(base, `/ipxe/script/${mac(node)}/auto.ipxe`, node));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const ms = (await Promise.all(paced)).map((script) => script.ms);
    figures[`${NODES} nodes, about 100 a second: scripts`] = `p50 ${percentile(ms, 0.5).toFixed(1)} ms, p99 ${percentile(ms, 0.99).toFixed(1)} ms`;

    for (const connections of CONNECTIONS) {
      const theirs = await throughput(`http://127.0.0.1:${peer}/assets/images/node.raw`, connections);
      const theirMemory = family(nginx.pid!).reduce((sum, pid) => sum + memory(pid).now, 0);
      const ours = await throughput(`${base}/assets/images/node.raw`, connections);
      figures[`image of ${IMAGE_MIB} MiB, ${connections} connections`] = `${ours.toFixed(0)} MB/s, ${memory(boot.pid).now} MiB (most ${memory(boot.pid).most}); nginx ${theirs.toFixed(0)} MB/s, ${theirMemory} MiB; ratio ${(ours / theirs).toFixed(2)}`;
    }
    printFigures('the boot plane over HTTP', figures);
  } finally {
    nginx.kill('SIGTERM');
    await boot.stop();
    await new Promise((resolve) => (nginx.exitCode === null ? nginx.once('exit', resolve) : resolve(null)));
  }
}, 240_000);
