/** Each role runs alone: four processes over one store do what `up` does in one, and `boot` answers safely with nobody beside it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import SqliteFile from 'libsql';
import { Agent, request } from 'undici';
import { CA_FILE } from '../support/certificates.js';
import { reservePort, reservePorts } from '../support/ports.js';
import { fetchWithPackage } from '../support/tftp-client.js';
import type { HouseProcess } from '../support/world/house.js';
import { startRole, type RoleProcess } from '../support/world/role.js';
import { startTestTemporal } from '../support/world/temporal.js';
import { createWorld } from '../support/world/world.js';
import { until } from '../support/until.js';

const ROLES = ['agentapi', 'boot', 'worker', 'operatorapi'] as const;
/** Where Debian's package ipxe puts its programs. */
const IPXE = '/usr/lib/ipxe';
const CERTIFICATES = join(process.cwd(), 'test', 'fixtures', 'certificates');

const isReady = async (url: string): Promise<boolean> => fetch(`${url}/readyz`).then(({ ok }) => ok, () => false);

test('four roles, each a process, take a node to active and retire it', async () => {
  const temporal = await startTestTemporal();
  const world = await createWorld(temporal);
  const running: RoleProcess[] = [];
  try {
    const operator = `http://127.0.0.1:${world.env['METALFLOW_OPERATOR_PORT']}`;
    world.house = { addresses: { operator }, kill: async () => undefined } as unknown as HouseProcess;
    for (const role of ROLES) running.push(startRole(role, world.env));
    world.netbox.webhook = { url: `${operator}/webhooks/netbox`, secret: world.secrets.webhookSecret };
    const ready = (what: string, look: () => Promise<boolean>): Promise<boolean> => until(`${what} is ready`, look, 150).catch((error: Error) => {
      throw new Error(`${error.message}:\n${running.map((role) => role.log().slice(-1500)).join('\n---\n')}`);
    });
    await ready('operatorapi', () => isReady(operator));
    await ready('boot', () => isReady(`http://127.0.0.1:${world.env['METALFLOW_BOOT_HTTP_PORT']}`));
    await ready('agentapi', () => isReady(`http://127.0.0.1:${world.env['METALFLOW_AGENT_HTTP_PORT']}`));
    await ready('worker', async () => running[2]!.log().includes('worker is up'));
    const node = await world.addNode({ payload: 'nixos-image' });
    world.ask(node, 'provision');
    const seen = async (state: string): Promise<boolean> => (await world.node(node).catch(() => null))?.state === state;
    await ready('active', () => seen('active'));
    world.ask(node, 'retire');
    await ready('retired', () => seen('retired'));
    expect(await world.run(node, 2)).toMatchObject({ kind: 'retire', end: 'done' });
    expect(await Promise.all(running.map((role) => role.stop()))).toEqual([0, 0, 0, 0]);
  } finally {
    for (const role of running) await role.stop();
    await world.close();
    await temporal.close();
  }
});

test("boot alone serves Debian's iPXE programs by plain and by per-MAC path where the site lets unknown MACs in, and nothing where it does not", async () => {
  const program = readFileSync(join(IPXE, 'ipxe.efi'));
  for (const [policy, served] of [['menu', true], ['disk', false]] as const) {
    const dir = mkdtempSync(join(tmpdir(), 'metalflow-boot-'));
    const [tftp, http, metrics] = (await reservePorts(3)) as [number, number, number];
    const boot = startRole('boot', { METALFLOW_DATA_DIR: dir, METALFLOW_METRICS_PORT: String(metrics), METALFLOW_TFTP_ROOT: `${dir}/none:${IPXE}`, METALFLOW_UNKNOWN_MAC: policy, METALFLOW_TFTP_PORT: String(tftp), METALFLOW_BOOT_HTTP_PORT: String(http), METALFLOW_SYSLOG_PORT: '0' });
    try {
      await until('boot is ready', () => isReady(`http://127.0.0.1:${http}`));
      for (const name of ['ipxe.efi', '02:00:00:00:00:99/ipxe.efi']) {
        const fetched = await fetchWithPackage(tftp, name).then((bytes) => bytes.equals(program), (error: Error) => error.message);
        expect([policy, name, fetched]).toEqual([policy, name, served ? true : expect.stringContaining('netboot-not-allowed')]);
      }
      const script = await (await fetch(`http://127.0.0.1:${http}/ipxe/script/02:00:00:00:00:99/auto.ipxe`)).text();
      expect(script.startsWith('#!ipxe\n')).toBe(true);
      expect(script.includes('kernel ')).toBe(served);
      const counted = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      expect(counted).toContain(`metalflow_boot_decisions_total{artefact="script",answer="${served ? 'wait-menu' : 'boot-disk'}",why="unknown_device"} 1`);
      expect(await boot.stop()).toBe(0);
    } finally {
      await boot.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  }
});

/** Boot alone over a folder of its own, on loopback. */
async function bootAlone(more: Readonly<Record<string, string>> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-boot-'));
  mkdirSync(join(dir, 'assets', 'images'), { recursive: true });
  writeFileSync(join(dir, 'assets', 'vmlinuz-x86_64'), 'a kernel');
  writeFileSync(join(dir, 'assets', 'images', 'node.raw'), 'an image');
  const [tftp, http] = (await reservePorts(2)) as [number, number];
  const env = { METALFLOW_DATA_DIR: dir, METALFLOW_TFTP_ROOT: IPXE, METALFLOW_TFTP_PORT: String(tftp), METALFLOW_BOOT_HTTP_PORT: String(http), METALFLOW_SYSLOG_PORT: '0', ...more };
  const base = `http://127.0.0.1:${http}`;
  const ask = async (path: string) => {
    const answer = await fetch(`${base}${path}`, { signal: AbortSignal.timeout(60_000) });
    return { status: answer.status, text: await answer.text() };
  };
  return { dir, base, tftp, http, env, ask, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
const untilAnswers = (ask: () => Promise<unknown>, role: RoleProcess): Promise<boolean> => until('boot answers', () => ask().then(() => true)).catch((error: Error) => {
  throw new Error(`${error.message}:\n${role.log()}`);
});
const SCRIPT = '/ipxe/script/02:00:00:00:00:99/auto.ipxe';

test.each([
  ['is away', async () => ({ METALFLOW_DATABASE_URL: `postgres://u:p@127.0.0.1:${await reservePort()}/metalflow` }), async () => undefined],
  ['is locked by somebody', async () => ({}), async (dir: string) => lockStore(join(dir, 'metalflow.db'))],
] as const)('boot alone starts while its store %s: nodes boot their disks, nothing bootable is given out, class images are served, and its health says why', async (_, env, arrange) => {
  // The policy that lets unknown MACs in counts for MACs that a store does not know, not for a store that does not say.
  const world = await bootAlone({ METALFLOW_UNKNOWN_MAC: 'menu', ...(await env()) });
  const locked = await arrange(world.dir);
  const boot = startRole('boot', world.env);
  try {
    await untilAnswers(() => world.ask('/healthz'), boot);
    for (let times = 0; times < 3; times++) expect(await world.ask(SCRIPT)).toEqual({ status: 200, text: '#!ipxe\necho netboot-not-allowed\nexit\n' });
    expect((await world.ask('/assets/vmlinuz-x86_64?mac=02:00:00:00:00:99')).status).toBe(403);
    await expect(fetchWithPackage(world.tftp, 'ipxe.efi')).rejects.toThrow('netboot-not-allowed');
    expect(await world.ask('/assets/images/node.raw')).toEqual({ status: 200, text: 'an image' });
    const ready = await world.ask('/readyz');
    expect([ready.status, JSON.parse(ready.text)]).toEqual([503, expect.objectContaining({
      status: 'not-ready', code: 'store_unavailable',
      listeners: { 'proxy-dhcp': { state: 'off', why: 'METALFLOW_PROXY_DHCP is not on' }, http: { state: 'listening', address: `127.0.0.1:${world.http}` }, https: { state: 'off', why: 'METALFLOW_BOOT_TLS_CERT is not set' }, tftp: { state: 'listening', address: `127.0.0.1:${world.tftp}` }, syslog: { state: 'listening', address: expect.stringMatching(/^127\.0\.0\.1:\d+$/) } },
    })]);
    if (locked) {
      locked.release();
      await untilAnswers(async () => expect((await world.ask('/readyz')).status).toBe(200), boot);
      expect((await world.ask(SCRIPT)).text).toContain('kernel ');
    }
    expect(await boot.stop()).toBe(0);
  } finally {
    locked?.release();
    await boot.stop();
    world.remove();
  }
});

/** As a backup program or a forgotten shell of an administrator holds it. */
function lockStore(file: string): { release(): void } {
  const database = new SqliteFile(file);
  database.exec('pragma journal_mode = WAL; pragma locking_mode = EXCLUSIVE; begin exclusive; create table held (x); ');
  let held = true;
  return {
    release() {
      if (!held) return;
      held = false;
      database.exec('rollback');
      database.close();
    },
  };
}

test('boot alone serves scripts and images over TLS as well, and a pair of files that do not belong together stops it before it opens a port', async () => {
  const world = await bootAlone();
  const https = await reservePort();
  const tls = { METALFLOW_BOOT_HTTPS_PORT: String(https), METALFLOW_BOOT_TLS_CERT: join(CERTIFICATES, 'amt.pem') };
  const wrong = startRole('boot', { ...world.env, ...tls, METALFLOW_BOOT_TLS_KEY: join(CERTIFICATES, 'self-signed.key') });
  await wrong.exited;
  const boot = startRole('boot', { ...world.env, ...tls, METALFLOW_BOOT_TLS_KEY: join(CERTIFICATES, 'amt.key') });
  const dispatcher = new Agent({ connect: { ca: readFileSync(CA_FILE), checkServerIdentity: () => undefined } });
  try {
    expect(await wrong.exited).toBe(1);
    expect(wrong.log()).toContain('METALFLOW_BOOT_TLS_CERT');
    await untilAnswers(() => world.ask('/healthz'), boot);
    const over = async (path: string) => (await request(`https://127.0.0.1:${https}${path}`, { dispatcher })).body.text();
    await untilAnswers(() => over('/healthz'), boot);
    expect(JSON.parse(await over('/healthz'))).toMatchObject({ status: 'ok', listeners: { https: { state: 'listening', address: `127.0.0.1:${https}` } } });
    expect(await over(SCRIPT)).toBe('#!ipxe\necho netboot-not-allowed\nexit\n');
    expect(await over('/assets/images/node.raw')).toBe('an image');
  } finally {
    await dispatcher.close();
    await wrong.stop();
    await boot.stop();
    world.remove();
  }
});

test('boot that is refused a port says which program holds it, and leaves nothing open', async () => {
  const world = await bootAlone();
  const holder = createSocket('udp4').bind(world.tftp, '127.0.0.1');
  await once(holder, 'listening');
  const boot = startRole('boot', world.env);
  try {
    expect(await boot.exited).toBe(1);
    expect(boot.log()).toContain('port_in_use');
    expect(boot.log()).toMatch(new RegExp(`TFTP cannot listen on 127\\.0\\.0\\.1:${world.tftp}: .*\\(process ${process.pid}\\) holds udp port ${world.tftp}`));
    await expect(world.ask('/healthz')).rejects.toThrow();
  } finally {
    holder.close();
    await boot.stop();
    world.remove();
  }
});
