/** What a scanner, a broken client and chance send to the boot plane: 20,000 requests, drawn from a seed, against a process of its own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { halfOpen } from '../support/bad-http.js';
import { reservePort } from '../support/ports.js';
import { seededRandom } from '../support/random.js';
import { startRole } from '../support/world/role.js';
import { until } from '../support/until.js';

const REQUESTS = 20_000;
const SEED = 20261130;
/** Connections at once. */
const AT_ONCE = 32;
/** A client of ours waits no longer for the end of what it has begun. */
const PATIENCE_MS = 3000;
const MIB = 1024 * 1024;
/** What a process may grow by while it answers nonsense; its heap is collected when it likes. */
const GROWTH_MIB = 200;

const random = seededRandom(SEED);
const whole = (below: number): number => Math.floor(random() * below);
const one = <T>(from: readonly T[]): T => from[whole(from.length)]!;
const many = (most: number, draw: () => string): string => Array.from({ length: whole(most) }, draw).join('');
const byte = (): string => String.fromCharCode(whole(256));

const METHODS = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT', 'PROPFIND', 'get', 'G T', ''];
const PATHS = ['/', '*', '/healthz', '/readyz', '/auto.ipxe', '/ipxe/script/02:00:00:00:00:99/auto.ipxe', '/ipxe/script/%00/auto.ipxe', '/ipxe/binary/ipxe.efi', '/ipxe/binary/../../etc/passwd', '/assets/images/', '/assets/images/SHA256SUMS', '/assets/images/node.raw', '/assets/images/large.raw', '/assets/vmlinuz-x86_64', '/assets/%2e%2e/%2e%2e/etc/passwd', '/assets/images/%zz', 'http://elsewhere/assets/images/node.raw', '//', '/assets/images/node.raw?mac=x', '/assets/vmlinuz-x86_64?mac=02:00:00:00:00:99&mac=y'];
const PIECES = ['/', '..', '%2f', '%00', '%', '?', '#', '&', '=', 'mac', 'images', 'a', ';', '\\', '%ff', 'é', ' ', '\t', '{', '"'];
const path = (): string => (random() < 0.6 ? one(PATHS) : `/${many(12, () => one(PIECES))}`) + (random() < 0.1 ? `?${'x'.repeat(whole(4000))}` : '');
const RANGES = ['bytes=0-0', 'bytes=-1', 'bytes=5-', 'bytes=9-5', 'bytes=0-1,3-4', 'bytes=999999999999999999999-', 'bytes=-0', 'lines=1-2', 'bytes=', 'bytes=0-18446744073709551616'];
const HEADERS = [
  () => `Range: ${one(RANGES)}`, () => `If-Range: ${one(['"x"', 'W/"x"', 'never', 'Fri, 20 Nov 2026 10:00:00 GMT'])}`, () => `If-None-Match: ${one(['*', '"x"', ',,,', '"'])}`, () => `If-Modified-Since: ${one(['never', '0', 'Fri, 31 Feb 2026 99:00:00 GMT'])}`,
  () => `Content-Length: ${one(['0', '5', '-1', '99999999999999999999', 'x', '5, 6'])}`, () => `Transfer-Encoding: ${one(['chunked', 'gzip', 'chunked, chunked', 'x'])}`, () => `Host: ${many(30, byte).replaceAll(/[\r\n]/g, '')}`, () => `X-Forwarded-For: ${many(5, () => one(['10.0.0.1', ',', '::', 'x']))}`,
  () => `x-metalflow-boot-mac: ${one(['02:00:00:00:00:99', 'x', ''])}`, () => `Expect: ${one(['100-continue', 'x'])}`, () => `Upgrade: ${one(['websocket', 'h2c'])}\r\nConnection: Upgrade`, () => `Content-Type: ${one(['application/json', 'x/y', 'a'.repeat(200)])}`, () => many(40, byte), () => `X-Long: ${'y'.repeat(whole(20_000))}`, () => `Connection: ${one(['close', 'keep-alive'])}`,
];
const headers = (): string => many(5, () => `${one(HEADERS)()}\r\n`);
const request = (): string => `${one(METHODS)} ${path()} HTTP/${one(['1.1', '1.1', '1.1', '1.0', '2.0', '9', ''])}\r\n${random() < 0.9 ? 'Host: x\r\n' : ''}${headers()}\r\n${random() < 0.2 ? many(200, byte) : ''}`;

/** One connection's worth, and how many requests that is. */
function draw(): { readonly bytes: string; readonly requests: number; readonly leaves: boolean } {
  const kind = random();
  if (kind < 0.1) return { bytes: many(400, byte), requests: 1, leaves: false };
  // Pipelined: all at once, answered or not.
  if (kind < 0.3) {
    const count = 2 + whole(12);
    return { bytes: Array.from({ length: count }, request).join(''), requests: count, leaves: random() < 0.3 };
  }
  const bytes = request();
  // Cut in the middle, or gone before the answer.
  return { bytes: random() < 0.2 ? bytes.slice(0, whole(bytes.length)) : bytes, requests: 1, leaves: random() < 0.4 };
}

/** Sends, and hears until the other side ends it or nothing comes any more. @returns the status of the first answer, null when there was none */
function say(port: number, { bytes, leaves }: ReturnType<typeof draw>): Promise<number | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    let first = '';
    const timer = setTimeout(() => socket.destroy(), leaves ? 20 : PATIENCE_MS);
    socket.on('data', (chunk: Buffer) => {
      if (first.length < 20) first += chunk.toString('latin1', 0, 20);
      // Answered; whatever it was drawn with, the next one waits.
      if (!leaves) socket.end();
    });
    socket.on('connect', () => socket.write(Buffer.from(bytes, 'latin1'), () => (leaves ? socket.destroy() : socket.end())));
    socket.on('error', () => undefined).on('close', () => {
      clearTimeout(timer);
      resolve(/^HTTP\/1\.1 (\d{3})/.exec(first) ? Number(first.slice(9, 12)) : null);
    });
  });
}

/** MiB of a process that are in memory. */
const residentMib = (pid: number): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

test(`the boot plane lives through ${REQUESTS} drawn requests and a hundred half-open ones, in bounded memory, and serves the next good one`, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-fuzz-'));
  mkdirSync(join(dir, 'assets', 'images'), { recursive: true });
  writeFileSync(join(dir, 'assets', 'images', 'node.raw'), 'an image');
  writeFileSync(join(dir, 'assets', 'images', 'large.raw'), Buffer.alloc(6 * MIB, 7));
  writeFileSync(join(dir, 'assets', 'vmlinuz-x86_64'), 'a kernel');
  const port = await reservePort();
  const boot = startRole('boot', { METALFLOW_DATA_DIR: dir, METALFLOW_TFTP_ROOT: dir, METALFLOW_TFTP_PORT: '0', METALFLOW_SYSLOG_PORT: '0', METALFLOW_BOOT_HTTP_PORT: String(port), METALFLOW_LOG_LEVEL: 'warn' });
  const base = `http://127.0.0.1:${port}`;
  const good = async (): Promise<unknown[]> => {
    const [script, image, kernel] = await Promise.all(['/ipxe/script/02:00:00:00:00:99/auto.ipxe', '/assets/images/node.raw', '/assets/vmlinuz-x86_64?mac=02:00:00:00:00:99'].map((url) => fetch(base + url, { signal: AbortSignal.timeout(120_000) })));
    return [await script!.text(), await image!.text(), kernel!.status];
  };
  const GOOD = ['#!ipxe\necho netboot-not-allowed\nexit\n', 'an image', 403];
  try {
    await until('boot is up', async () => (await fetch(`${base}/healthz`)).ok);
    const stuck = await halfOpen(base, 100);
    expect(await good()).toEqual(GOOD);
    const before = residentMib(boot.pid);
    const statuses = new Map<number | null, number>();
    let sent = 0;
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      while (sent < REQUESTS) {
        const drawn = draw();
        sent += drawn.requests;
        const status = await say(port, drawn);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }));
    expect(await good()).toEqual(GOOD);
    expect(sent).toBeGreaterThanOrEqual(REQUESTS);
    // A wrong request is the client's, never ours.
    expect([...statuses.keys()].filter((status) => status !== null && status >= 500 && status !== 501 && status !== 503)).toEqual([]);
    // It was heard, not only dropped.
    expect([200, 400, 403, 404].filter((status) => !statuses.has(status))).toEqual([]);
    expect(residentMib(boot.pid) - before).toBeLessThan(GROWTH_MIB);
    stuck.close();
    expect(await boot.stop()).toBe(0);
  } finally {
    await boot.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
