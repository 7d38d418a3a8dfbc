import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DhcpConfigOptions, PrintedDhcpConfig } from '../../src/cli/roles.js';
import { readConfig } from '../../src/config/index.js';
import { dhcpConfig, openProxyDhcp } from '../../src/main/dhcp.js';
import { createMetrics } from '../../src/main/metrics.js';
import { createStore, openDatabase } from '../../src/store/index.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { deviceOf } from '../support/store-bench.js';

let dir: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'metalflow-dhcp-place-'));
  const store = createStore({ db: await openDatabase(`sqlite:${join(dir, 'metalflow.db')}`), temporal: { look: async () => ({ kind: 'absent' }) } });
  await store.devices.register(deviceOf({ id: '10', name: 'late', macs: ['02:00:00:00:00:0a', '02:00:00:00:00:01'], addresses: [] }), { state: 'active', adopted: false });
  await store.devices.register(deviceOf({ id: '9', name: 'early', macs: ['02:00:00:00:00:09'], addresses: [] }), { state: 'planned', adopted: false });
  for (const [id, state] of [['11', 'retired'], ['12', 'withdrawn'], ['13', 'retired-unproven']] as const) await store.devices.register(deviceOf({ id, name: state, macs: [`02:00:00:00:01:${id}`], addresses: [] }), { state, adopted: false });
  await store.installation.begin('a');
  await store.installation.confirm();
  await store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const print = (options: Partial<DhcpConfigOptions>, env: Record<string, string> = {}): Promise<PrintedDhcpConfig> =>
  dhcpConfig(readConfig({ METALFLOW_DATA_DIR: dir, ...env }, 'cli'), { server: 'dnsmasq', serverAddress: null, subnet: null, pool: null, ...options });

test.each<[string, Partial<DhcpConfigOptions>, Record<string, string>, string]>([
  ['the option', { serverAddress: '10.0.0.1' }, { METALFLOW_ASSETS_URL: 'http://boot.example:81/assets' }, 'http://boot.example:81, TFTP 10.0.0.1'],
  ['the assets, before the address that is listened on', {}, { METALFLOW_ASSETS_URL: 'http://10.0.0.2:81/assets', METALFLOW_BIND_ADDRESS: '10.0.0.3' }, 'http://10.0.0.2:81, TFTP 10.0.0.2'],
  ['the address that is listened on', {}, { METALFLOW_BIND_ADDRESS: '10.0.0.3', METALFLOW_BOOT_HTTP_PORT: '81' }, 'http://10.0.0.3:81, TFTP 10.0.0.3'],
])('the boot plane is where %s says', async (_, options, env, place) => {
  expect((await print(options, env)).config.split('\n')[0]).toBe(`# metalflow: boot files of the boot plane ${place}`);
});

test.each<[string, Partial<DhcpConfigOptions>, Record<string, string>, RegExp]>([
  ['loopback is no address of a node network', {}, { METALFLOW_BIND_ADDRESS: '127.0.0.1' }, /give --server-address/],
  ['a wildcard is none', {}, { METALFLOW_BIND_ADDRESS: '0.0.0.0' }, /give --server-address/],
  ['a name alone does not say where TFTP is', {}, { METALFLOW_ASSETS_URL: 'http://boot.example/assets' }, /give --server-address/],
  ['a port that is not known beforehand', { serverAddress: '10.0.0.1' }, { METALFLOW_BOOT_HTTP_PORT: '0' }, /METALFLOW_BOOT_HTTP_PORT is 0/],
  ['a pool of no network', { serverAddress: '10.0.0.1', pool: { from: '10.0.0.5', to: '10.0.0.6' } }, {}, /--pool needs --subnet/],
])('nothing is printed: %s', async (_, options, env, message) => {
  await expect(print(options, env)).rejects.toMatchObject({ code: 'dhcp_config_unprintable', message: expect.stringMatching(message) });
});

test('every device but those at their life\'s end is in it, by its id, with all its MACs', async () => {
  const { config, devices, warnings } = await print({ serverAddress: '10.0.0.1' });
  expect([devices, warnings]).toEqual([2, []]);
  expect(config.split('\n').filter((line) => /^(# device|dhcp-host)/.test(line))).toEqual([
    '# device 9: early', 'dhcp-host=02:00:00:00:00:09,set:metalflow-020000000009',
    '# device 10: late', 'dhcp-host=02:00:00:00:00:01,set:metalflow-020000000001', 'dhcp-host=02:00:00:00:00:0a,set:metalflow-02000000000a',
  ]);
});

test('what will not work as printed is said: TFTP on a port no firmware asks, a store without devices', async () => {
  expect((await print({ serverAddress: '10.0.0.1' }, { METALFLOW_TFTP_PORT: '6969' })).warnings).toEqual([expect.stringContaining('METALFLOW_TFTP_PORT is 6969')]);
  expect((await print({ serverAddress: '10.0.0.1' }, { METALFLOW_DATA_DIR: join(dir, 'empty') })).warnings).toEqual([expect.stringContaining(join(dir, 'empty', 'metalflow.db')), expect.stringContaining('knows no device yet')]);
  expect(existsSync(join(dir, 'empty'))).toBe(false);
});

test('the proxy does not start where no setting says at which address nodes reach us', async () => {
  const config = readConfig({ METALFLOW_PROXY_DHCP: 'on', METALFLOW_BIND_ADDRESS: '127.0.0.1' }, 'boot');
  const gate = { decide: async () => ({ kind: 'silent', subject: null, why: 'x' }) as const };
  await expect(openProxyDhcp({ config, gate, httpPort: 1, log: silentLogger(), metrics: createMetrics() })).rejects.toMatchObject({ code: 'setting_invalid', details: { name: 'METALFLOW_PROXY_DHCP' } });
});
