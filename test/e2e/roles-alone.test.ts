/** Each role runs alone: four processes over one store do what `up` does in one, and `boot` answers safely with nobody beside it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/main/temporal-server.js';
import { fetchWithPackage } from '../support/tftp-client.js';
import type { HouseProcess } from '../support/world/house.js';
import { startRole, type RoleProcess } from '../support/world/role.js';
import { startTestTemporal } from '../support/world/temporal.js';
import { createWorld } from '../support/world/world.js';

const ROLES = ['agentapi', 'boot', 'worker', 'operatorapi'] as const;
/** Where Debian's package ipxe puts its programs. */
const IPXE = '/usr/lib/ipxe';

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
    const until = async (what: string, look: () => Promise<boolean>): Promise<void> => {
      for (let tries = 0; tries < 300; tries++) {
        if (await look()) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`${what} is not ready:\n${running.map((role) => role.log().slice(-1500)).join('\n---\n')}`);
    };
    await until('operatorapi', () => isReady(operator));
    await until('boot', () => isReady(`http://127.0.0.1:${world.env['METALFLOW_BOOT_HTTP_PORT']}`));
    await until('agentapi', () => isReady(`http://127.0.0.1:${world.env['METALFLOW_AGENT_HTTP_PORT']}`));
    await until('worker', async () => running[2]!.log().includes('worker is up'));
    const node = await world.addNode({ payload: 'nixos-image' });
    world.ask(node, 'provision');
    const seen = async (state: string): Promise<boolean> => (await world.node(node).catch(() => null))?.state === state;
    await until('active', () => seen('active'));
    world.ask(node, 'retire');
    await until('retired', () => seen('retired'));
    expect(await world.run(node, 2)).toMatchObject({ kind: 'retire', end: 'done' });
    expect(await Promise.all(running.map((role) => role.stop()))).toEqual([0, 0, 0, 0]);
  } finally {
    for (const role of running) await role.stop();
    await world.close();
    await temporal.close();
  }
}, 180_000);

test("boot alone serves Debian's iPXE programs by plain and by per-MAC path where the site lets unknown MACs in, and nothing where it does not", async () => {
  const program = readFileSync(join(IPXE, 'ipxe.efi'));
  for (const [policy, served] of [['menu', true], ['disk', false]] as const) {
    const dir = mkdtempSync(join(tmpdir(), 'metalflow-boot-'));
    const [tftp, http] = [await freePort(), await freePort()];
    const boot = startRole('boot', { METALFLOW_DATA_DIR: dir, METALFLOW_TFTP_ROOT: IPXE, METALFLOW_UNKNOWN_MAC: policy, METALFLOW_TFTP_PORT: String(tftp), METALFLOW_BOOT_HTTP_PORT: String(http), METALFLOW_SYSLOG_PORT: '0' });
    try {
      for (let tries = 0; tries < 200 && !(await isReady(`http://127.0.0.1:${http}`)); tries++) await new Promise((resolve) => setTimeout(resolve, 100));
      for (const name of ['ipxe.efi', '02:00:00:00:00:99/ipxe.efi']) {
        const fetched = await fetchWithPackage(tftp, name).then((bytes) => bytes.equals(program), (error: Error) => error.message);
        expect([policy, name, fetched]).toEqual([policy, name, served ? true : expect.stringContaining('netboot-not-allowed')]);
      }
      const script = await (await fetch(`http://127.0.0.1:${http}/ipxe/script/02:00:00:00:00:99/auto.ipxe`)).text();
      expect(script.startsWith('#!ipxe\n')).toBe(true);
      expect(script.includes('kernel ')).toBe(served);
      expect(await boot.stop()).toBe(0);
    } finally {
      await boot.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  }
}, 90_000);
