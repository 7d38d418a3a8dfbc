/** Which program holds a port of this host, as far as /proc tells us. Linux only; elsewhere, and where it is not permitted, nobody is named. */
import { readdir, readFile, readlink } from 'node:fs/promises';

export type Transport = 'tcp' | 'udp';

export interface PortHolder {
  /** Null when the process belongs to somebody whose files we may not see. */
  readonly pid: number | null;
  /** The kernel's short name of the program; never its arguments, which may hold secrets. */
  readonly program: string | null;
  readonly uid: number;
}

/** State of a socket that waits for clients: TCP_LISTEN; an unconnected UDP socket reads as TCP_CLOSE. */
const WAITING: Readonly<Record<Transport, string>> = { tcp: '0A', udp: '07' };
/** A host with more processes than this is not searched to the end: an error message must not take seconds. */
const MOST_PROCESSES = 5000;
/** The kernel gives a table out in pieces, and a row can slip between two of them while sockets come and go. */
const READS = 5;

/**
 * Sockets that wait on `port`, from the text of /proc/net/{tcp,udp}{,6} (proc(5)): inode and owner. Pure.
 * @param table the file's text; lines that do not fit are left out
 */
export function waitingSockets(table: string, transport: Transport, port: number): { readonly inode: string; readonly uid: number }[] {
  const asked = port.toString(16).toUpperCase().padStart(4, '0');
  return table.split('\n').slice(1).flatMap((line) => {
    const [, local = '', , state, , , , uid = '', , inode = ''] = line.trim().split(/\s+/);
    return local.endsWith(`:${asked}`) && state === WAITING[transport] && /^\d+$/.test(uid) && /^[1-9]\d*$/.test(inode) ? [{ inode, uid: Number(uid) }] : [];
  });
}

/** Everybody who waits on the port, each once. Empty when nobody does or nothing can be read. Never throws. */
export async function findPortHolders(transport: Transport, port: number, proc = '/proc'): Promise<PortHolder[]> {
  let sockets: ReturnType<typeof waitingSockets> = [];
  for (let reads = 0; reads < READS && sockets.length === 0; reads++) {
    const tables = await Promise.all(['', '6'].map((family) => readFile(`${proc}/net/${transport}${family}`, 'utf8').catch(() => '')));
    sockets = tables.flatMap((table) => waitingSockets(table, transport, port));
  }
  if (sockets.length === 0) return [];
  const owners = await ownersOf(new Set(sockets.map(({ inode }) => `socket:[${inode}]`)), proc);
  const holders = sockets.map(({ inode, uid }): PortHolder => ({ pid: null, program: null, ...owners.get(`socket:[${inode}]`), uid }));
  return holders.filter((holder, at) => holders.findIndex((other) => other.pid === holder.pid && other.uid === holder.uid) === at);
}

async function ownersOf(links: ReadonlySet<string>, proc: string): Promise<Map<string, { pid: number; program: string }>> {
  const owners = new Map<string, { pid: number; program: string }>();
  const pids = (await readdir(proc).catch(() => [] as string[])).filter((name) => /^\d+$/.test(name)).slice(0, MOST_PROCESSES);
  for (const pid of pids) {
    const held = (await linksOf(`${proc}/${pid}/fd`)).find((link) => links.has(link) && !owners.has(link));
    if (!held) continue;
    owners.set(held, { pid: Number(pid), program: (await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '?')).trim() });
    if (owners.size === links.size) break;
  }
  return owners;
}

/** Where the open files of a process lead; empty when we may not see them. */
async function linksOf(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [] as string[]);
  return Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
}

/** For a person: `nginx (process 812)`; null when there is nobody to name. */
export function holdersText(holders: readonly PortHolder[]): string | null {
  if (holders.length === 0) return null;
  return holders.map(({ pid, program, uid }) => (pid === null ? `a process of user ${uid}, whose name may not be read` : `${program} (process ${pid})`)).join(' and ');
}
