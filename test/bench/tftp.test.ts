/** The TFTP server beside Debian's: same client, same files, same run. Needs root (dnsmasq listens on port 69 only, and gets a network namespace of its own). */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reservePort } from '../support/ports.js';
import { startBootProcess, type BootProcess } from '../support/boot-process.js';
import { patterned } from '../support/tftp-server.js';
import { printFigures } from './print.js';

const run = promisify(execFile);
const FILE = patterned(1_000_000);
/** Measurements of each server at each point without loss; the middle one counts. */
const TURNS = 3;
const NAMESPACE = `metalflow-bench-${process.pid}`;

/** Clients, fetches of each, block size, window size, datagrams lost of a thousand. */
const POINTS: readonly (readonly [number, number, number, number, number])[] = [
  [1, 10, 512, 1, 0], [1, 10, 1468, 1, 0], [1, 10, 1468, 16, 0],
  [50, 1, 512, 1, 0], [50, 1, 1468, 1, 0], [50, 1, 1468, 16, 0],
  [200, 1, 1468, 1, 0], [200, 1, 1468, 16, 0],
  [50, 1, 1468, 16, 10],
];

interface Figures {
  readonly done: number;
  readonly failed: number;
  readonly megabytesPerSecond: number;
  readonly p99: number;
  readonly datagrams: number;
}
interface Peer {
  readonly name: string;
  readonly port: number;
  readonly inNamespace: boolean;
}

let dir: string;
let boot: BootProcess;
const children: ChildProcess[] = [];
const peers: Peer[] = [];

const start = (program: string, args: readonly string[]): void => {
  const child = spawn(program, args, { stdio: 'ignore' });
  child.once('error', () => undefined);
  children.push(child);
};
const needs = async (program: string, debianPackage: string): Promise<void> => {
  await run('which', [program]).catch(() => {
    throw new Error(`${program} is missing: install the Debian package ${debianPackage}`);
  });
};

beforeAll(async () => {
  for (const [program, debianPackage] of [['cc', 'gcc and libc6-dev'], ['in.tftpd', 'tftpd-hpa'], ['dnsmasq', 'dnsmasq-base'], ['ip', 'iproute2']] as const) await needs(program, debianPackage);
  dir = await mkdtemp(join(tmpdir(), 'metalflow-tftp-bench-'));
  await chmod(dir, 0o755);
  await writeFile(join(dir, 'file'), FILE);
  await run('cc', ['-O2', '-o', join(dir, 'client'), join(process.cwd(), 'test', 'bench', 'tftp-client.c')]);
  boot = await startBootProcess({ unknownMac: 'menu', tftp: { file: FILE } });
  await run('ip', ['netns', 'add', NAMESPACE]);
  await run('ip', ['netns', 'exec', NAMESPACE, 'ip', 'link', 'set', 'lo', 'up']);
  start('ip', ['netns', 'exec', NAMESPACE, 'dnsmasq', '--no-daemon', '--conf-file=/dev/null', '--port=0', '--enable-tftp', `--tftp-root=${dir}`, '--tftp-max=2000', '--interface=lo', '--user=root', '--quiet-tftp']);
  const port = await reservePort();
  start('in.tftpd', ['-4', '-L', '-a', `127.0.0.1:${port}`, '-u', 'root', '-s', dir]);
  peers.push({ name: 'metalflow', port: boot.tftpPort, inNamespace: false }, { name: 'in.tftpd', port, inNamespace: false }, { name: 'dnsmasq', port: 69, inNamespace: true });
  // One fetch each: the servers are up, and compiled.
  for (const peer of peers) await fetchAll(peer, [1, 5, 1468, 1, 0]);
}, 90_000);
afterAll(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.pid !== undefined) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }
  await run('ip', ['netns', 'del', NAMESPACE]).catch(() => undefined);
  await boot?.stop();
  if (dir) await rm(dir, { recursive: true, force: true });
}, 60_000);

async function fetchAll({ port, inNamespace }: Peer, point: readonly number[]): Promise<Figures> {
  const command = [join(dir, 'client'), '127.0.0.1', String(port), 'file', join(dir, 'file'), ...point.map(String)];
  const [program, ...args] = inNamespace ? ['ip', 'netns', 'exec', NAMESPACE, ...command] : command;
  // The client exits with 1 when a fetch failed; what it printed counts.
  const { stdout } = await run(program!, args, { timeout: 150_000 }).catch((error: { stdout?: string; message: string }) => {
    if (!error.stdout) throw new Error(error.message);
    return { stdout: error.stdout };
  });
  return JSON.parse(stdout) as Figures;
}

/** Of several measurements, the one of the middle rate. */
const middle = (measured: readonly Figures[]): Figures => [...measured].sort((a, b) => a.megabytesPerSecond - b.megabytesPerSecond)[measured.length >> 1]!;

test('MB/s and p99 beside in.tftpd and dnsmasq', async () => {
  const rows: Record<string, string> = {};
  let failed = 0;
  for (const point of POINTS) {
    const [clients, , blockSize, windowSize, loss] = point;
    // In turns, so that what else the machine does meets every server alike; loss once, since the others take half a minute for it.
    const measured = peers.map((): Figures[] => []);
    let cpuMs = 0;
    for (let turn = 0; turn < (loss ? 1 : TURNS); turn++) {
      for (const [index, peer] of peers.entries()) {
        const before = boot.usage();
        const figures = await fetchAll(peer, point);
        measured[index]!.push(figures);
        if (peer.name !== 'metalflow') continue;
        cpuMs += boot.usage().cpuMs - before.cpuMs;
        failed += figures.failed + (figures.done === point[0] * point[1] ? 0 : 1);
      }
    }
    const rates = measured.map((of) => middle(of).megabytesPerSecond);
    const texts = peers.map(({ name }, index) => {
      const { megabytesPerSecond, p99 } = middle(measured[index]!);
      const lost = measured[index]!.reduce((sum, of) => sum + of.failed, 0);
      const datagrams = measured[index]!.reduce((sum, of) => sum + of.datagrams, 0);
      const ours = name === 'metalflow' ? `, ${((1000 * cpuMs) / datagrams).toFixed(1)} µs CPU a datagram, RSS ${(boot.usage().rss / 2 ** 20).toFixed(0)} MiB` : '';
      return `${name} ${megabytesPerSecond.toFixed(1)} MB/s, p99 ${p99.toFixed(0)} ms${lost ? `, ${lost} failed` : ''}${ours}`;
    });
    rows[`${clients} × ${blockSize}/${windowSize}${loss ? `, ${loss / 10} % lost` : ''}`] = `${texts.join(' | ')} | ratio to in.tftpd ${(rates[0]! / rates[1]!).toFixed(2)}, to dnsmasq ${(rates[0]! / rates[2]!).toFixed(2)}`;
  }
  printFigures('TFTP, 1 MB file: clients × block size/window size', rows);
  expect(failed).toBe(0);
  expect((await readFile(join(dir, 'file'))).equals(FILE)).toBe(true);
}, 600_000);
