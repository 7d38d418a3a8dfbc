/**
 * A network of its own: stations on one bridge, each a network namespace, so that the real ports and broadcasts are there and nothing outside
 * sees them. Everything hangs on two kinds of holder processes that end with the test; the kernel then takes the namespaces away.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SEARCHED = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** Debian's packages of what the tests need. */
const PACKAGE_OF = { ip: 'iproute2', unshare: 'util-linux', nsenter: 'util-linux', dnsmasq: 'dnsmasq-base', 'kea-dhcp4': 'kea-dhcp4-server' } as const;

/** @throws with the package to install */
export function programPath(name: keyof typeof PACKAGE_OF): string {
  const folder = SEARCHED.find((each) => existsSync(`${each}/${name}`));
  if (!folder) throw new Error(`this test needs ${name}: install the Debian package ${PACKAGE_OF[name]}`);
  return `${folder}/${name}`;
}

export interface Running {
  log(): string;
  readonly ended: Promise<number | null>;
  stop(): Promise<void>;
}

export interface NetworkBench {
  /** A program of a station; runs until it ends or the bench closes. */
  start(station: string, command: string, args: readonly string[], env?: Readonly<Record<string, string>>): Running;
  close(): Promise<void>;
}

/** @param stations name → IPv4 with prefix length, e.g. `{ client: '10.77.0.9/24' }` */
export async function createNetworkBench(stations: Readonly<Record<string, string>>): Promise<NetworkBench> {
  const ip = programPath('ip');
  const children: Running[] = [];
  // A user namespace needs no root; where a host forbids it, root does without.
  const userns = await run(programPath('unshare'), ['-Urn', 'true']).then(() => true, () => false);
  if (!userns && process.getuid?.() !== 0) throw new Error('this test needs network namespaces: allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or run it as root');

  const enter = (pid: number): string[] => [programPath('nsenter'), '-t', String(pid), ...(userns ? ['-U', '--preserve-credentials'] : []), '-n'];
  /** Holds a namespace for as long as its standard input is open: it ends with us, however we end. */
  async function hold([command = '', ...args]: readonly string[]): Promise<number> {
    const child = spawn(command, [...args, 'sh', '-c', 'echo held; exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
    children.push(running(child));
    await new Promise<void>((resolve, reject) => {
      child.stdout!.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`no network namespace (exit ${code})`)));
      child.once('error', reject);
    });
    return child.pid!;
  }
  const close = async (): Promise<void> => {
    for (const child of children.splice(0).reverse()) await child.stop();
  };

  try {
    const hub = await hold([programPath('unshare'), userns ? '-Urn' : '-n']);
    const inside = async (pid: number, ...args: string[]): Promise<void> => {
      const [command = '', ...rest] = enter(pid);
      await run(command, [...rest, ip, ...args]);
    };
    await inside(hub, 'link', 'add', 'br0', 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0');
    await inside(hub, 'link', 'set', 'br0', 'up');
    const pids = new Map<string, number>();
    for (const [index, [name, address]] of Object.entries(stations).entries()) {
      const pid = await hold([...enter(hub), programPath('unshare'), '-n']);
      pids.set(name, pid);
      await inside(hub, 'link', 'add', `port${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
      await inside(hub, 'link', 'set', `port${index}`, 'master', 'br0', 'up');
      await inside(pid, 'addr', 'add', address, 'broadcast', '+', 'dev', 'eth0');
      await inside(pid, 'link', 'set', 'lo', 'up');
      await inside(pid, 'link', 'set', 'eth0', 'up');
    }
    return {
      start(station, command, args, env = {}) {
        const [nsenter = '', ...rest] = enter(pids.get(station)!);
        const started = running(spawn(nsenter, [...rest, command, ...args], { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'pipe'] }));
        children.push(started);
        return started;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function running(child: ChildProcess): Running {
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-200_000)));
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  return {
    log: () => log,
    ended,
    async stop() {
      child.stdin?.end();
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended.finally(() => clearTimeout(timer));
    },
  };
}
