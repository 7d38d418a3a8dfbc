/**
 * Real DHCP servers of Debian with the configuration that `metalflow dhcp` prints, and the proxy beside one of them, on a network that the test
 * makes and takes away. Every kind of client asks as its firmware does.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DhcpConfigOptions } from '../../src/cli/index.js';
import { readConfig } from '../../src/config/index.js';
import { dhcpConfig } from '../../src/main/dhcp.js';
import { createStore, openDatabase } from '../../src/store/index.js';
import { CLIENT_NAMES, type ClientName } from '../support/dhcp-client.js';
import type { Heard, Offered, Questions } from '../support/dhcp-client-main.js';
import { createNetworkBench, programPath, type NetworkBench, type Running } from '../support/network-bench.js';
import { deviceOf } from '../support/store-bench.js';
import { until } from '../support/until.js';

const run = promisify(execFile);
const ROOT = join(__dirname, '..', '..');
const WAITS = '02:01:48:aa:bb:0c';
const RUNS = '02:01:48:aa:bb:0d';
const STRANGER = '02:01:48:aa:bb:0e';
const [DHCP, PROXY, CLIENT] = ['10.77.0.1', '10.77.0.2', '10.77.0.9'];
const HOSTILE = 'x"\n*/ ]}}\ndhcp-script=/bin/evil <?include "/etc/passwd"?>';
const NO_ADDRESS = '0.0.0.0';


let dir: string;
let client: string;
let bench: NetworkBench;
const home = (name: string): string => join(dir, name);

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'metalflow-dhcp-'));
  client = home('client.mjs');
  await run(join(ROOT, 'node_modules', '.bin', 'esbuild'), [join(ROOT, 'test', 'support', 'dhcp-client-main.ts'), '--bundle', '--platform=node', '--format=esm', '--target=node20', `--outfile=${client}`]);
  const db = await openDatabase(`sqlite:${home('metalflow.db')}`);
  const store = createStore({ db, temporal: { look: async () => ({ kind: 'absent' }) } });
  await store.installation.begin('installation-a');
  await store.installation.confirm();
  await store.devices.register(deviceOf({ id: '7', name: HOSTILE, macs: [WAITS] }), { state: 'planned', adopted: false });
  await store.devices.register(deviceOf({ id: '8', name: 'node-8', macs: [RUNS], addresses: [] }), { state: 'active', adopted: true });
  await store.devices.register(deviceOf({ id: '9', name: 'gone', macs: ['02:01:48:aa:bb:0f'], addresses: [] }), { state: 'retired', adopted: false });
  await store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const withNetwork = (): void => {
  beforeEach(async () => {
    bench = await createNetworkBench({ dhcp: `${DHCP}/24`, proxy: `${PROXY}/24`, client: `${CLIENT}/24` });
  });
  afterEach(() => bench.close());
};

type Server = DhcpConfigOptions['server'];
const NETWORK = { subnet: { network: '10.77.0.0', prefix: 24 }, pool: { from: '10.77.0.100', to: '10.77.0.200' } };
/** What `metalflow dhcp …` prints, with the store of this test. */
async function printed(server: Server, options: Partial<DhcpConfigOptions> = NETWORK, env: Record<string, string> = {}): Promise<string> {
  const { config, devices, warnings } = await dhcpConfig(readConfig({ METALFLOW_DATA_DIR: dir, ...env }, 'cli'), { server, serverAddress: PROXY!, subnet: null, pool: null, ...options });
  expect([devices, warnings]).toEqual([2, []]);
  return config;
}

async function said(program: Running, text: string): Promise<void> {
  let hasEnded = false;
  void program.ended.then(() => (hasEnded = true));
  await until(`it says "${text}"`, () => hasEnded || program.log().includes(text)).catch(() => undefined);
  if (!program.log().includes(text)) throw new Error(`it never said "${text}":\n${program.log()}`);
}

async function startDnsmasq(lines: readonly string[], station = 'dhcp'): Promise<void> {
  const file = home(`dnsmasq-${station}.conf`);
  writeFileSync(file, ['port=0', 'no-ping', 'dhcp-authoritative', 'interface=eth0', 'bind-interfaces', 'log-facility=-', 'pid-file=', `dhcp-leasefile=${home(`leases-${station}`)}`, ...lines, ''].join('\n'));
  // --no-daemon: it changes no user, which a namespace of an ordinary user does not let it.
  await said(bench.start(station, programPath('dnsmasq'), ['--no-daemon', `--conf-file=${file}`]), 'sockets bound exclusively');
}

async function startKea(config: string): Promise<void> {
  const whole = JSON.parse(config) as { Dhcp4: Record<string, unknown> };
  // Only where it keeps its leases and its log is the test's.
  Object.assign(whole.Dhcp4, { 'lease-database': { type: 'memfile', persist: false }, loggers: [{ name: 'kea-dhcp4', output_options: [{ output: 'stderr' }], severity: 'INFO' }] });
  writeFileSync(home('kea.json'), JSON.stringify(whole));
  await said(bench.start('dhcp', programPath('kea-dhcp4'), ['-c', home('kea.json')], { KEA_PIDFILE_DIR: dir, KEA_LOCKFILE_DIR: dir }), 'DHCP4_STARTED');
}

async function ask(questions: Omit<Questions, 'from'>): Promise<Heard[]> {
  const asking = bench.start('client', process.execPath, [client, JSON.stringify({ from: CLIENT, ...questions })]);
  expect([await asking.ended, asking.log()]).toEqual([0, expect.stringMatching(/^\[/)]);
  return JSON.parse(asking.log()) as Heard[];
}

const isBoot = (name: ClientName): boolean => name.startsWith('iPXE');
function fileOf(name: ClientName, mac: string): string {
  const program = name === 'BIOS PXE' ? 'undionly.kpxe' : name.includes('arm64') ? 'ipxe-arm64.efi' : 'ipxe.efi';
  if (isBoot(name)) return `http://${PROXY}:7080/ipxe/script/${mac}/auto.ipxe`;
  return name.startsWith('UEFI HTTP') ? `http://${PROXY}:7080/ipxe/binary/${mac}/${program}` : `${mac}/${program}`;
}
/** As an address server gives it: address and boot file in one. */
const whole = (name: ClientName, mac: string): Partial<Offered> => ({ from: DHCP, address: expect.stringMatching(/^10\.77\.0\.\d{3}$/) as unknown as string, nextServer: PROXY, file: fileOf(name, mac), ...(name.startsWith('UEFI HTTP') && { vendorClass: 'HTTPClient' }) });

async function accepts(server: Server, config: string): Promise<string> {
  const file = home(`accepted-${server}`);
  writeFileSync(file, config);
  const checked = server === 'kea'
    ? run(programPath('kea-dhcp4'), ['-t', file], { env: { KEA_PIDFILE_DIR: dir, KEA_LOCKFILE_DIR: dir } })
    : run(programPath('dnsmasq'), ['--test', `--conf-file=${file}`]);
  return checked.then(() => 'accepted', (error: Error) => error.message);
}

describe.each(['kea', 'dnsmasq'] as const)('%s accepts what is printed, hostile device name and all,', (server) => {
  const variants: [string, Partial<DhcpConfigOptions>, Record<string, string>][] = [
    ['alone', {}, {}], ['with the network', NETWORK, {}], ['with a network of reservations only', { subnet: NETWORK.subnet }, {}], ['with unknown machines let in', NETWORK, { METALFLOW_UNKNOWN_MAC: 'menu' }],
  ];
  test.each(variants)('%s', async (_, options, env) => {
    expect(await accepts(server, await printed(server, options, env))).toBe('accepted');
  });
  test('and the command prints just that', async () => {
    const words = ['dhcp', `${server}-config`, '--server-address', PROXY!, '--subnet', '10.77.0.0/24', '--pool', '10.77.0.100-10.77.0.200'];
    expect(await run(process.execPath, [join(ROOT, 'dist', 'bin.js'), ...words], { env: { PATH: process.env['PATH'], METALFLOW_DATA_DIR: dir } })).toEqual({ stdout: await printed(server), stderr: '' });
  });
  test('and would not accept it with a directive it does not know', async () => {
    const broken = server === 'kea' ? (await printed(server)).replace('"subnet4"', '"subnet5"') : `${await printed(server)}dhcp-boat=x\n`;
    expect(await accepts(server, broken)).not.toBe('accepted');
  });
});

describe.each(['kea', 'dnsmasq'] as const)('%s with the printed configuration', (server) => {
  withNetwork();
  const start = async (config: string): Promise<void> => (server === 'kea' ? startKea(config) : startDnsmasq(config.split('\n')));

  test('gives each kind of client of each device its own boot file, a stranger an address alone, and a retired device nothing of its own', async () => {
    await start(await printed(server));
    const known = [WAITS, RUNS].flatMap((mac) => CLIENT_NAMES.map((name) => ({ name, mac })));
    const strangers = [STRANGER, '02:01:48:aa:bb:0f'].map((mac) => ({ name: 'UEFI x64' as const, mac }));
    const heard = await ask({ asks: [...known, ...strangers], offers: 1 });
    for (const { name, mac, offers } of heard.slice(0, known.length)) expect([name, mac, offers]).toEqual([name, mac, [expect.objectContaining(whole(name, mac))]]);
    for (const { offers } of heard.slice(known.length)) expect(offers).toEqual([expect.objectContaining({ from: DHCP, file: '', address: expect.stringMatching(/^10\.77\.0\./) })]);
  });

  test('gives strangers boot files too where the site lets them in, and its devices still their own', async () => {
    await start(await printed(server, NETWORK, { METALFLOW_UNKNOWN_MAC: 'menu' }));
    const [bios, http, ipxe, known] = await ask({ asks: [{ name: 'BIOS PXE', mac: STRANGER }, { name: 'UEFI HTTP x64', mac: STRANGER }, { name: 'iPXE on UEFI', mac: STRANGER }, { name: 'UEFI x64', mac: WAITS }], offers: 1 });
    expect([bios, http, ipxe].map((heard) => heard!.offers[0]!.file)).toEqual(['undionly.kpxe', `http://${PROXY}:7080/ipxe/binary/ipxe.efi`, `http://${PROXY}:7080/ipxe/script/\${mac}/auto.ipxe`]);
    expect(known!.offers).toEqual([expect.objectContaining(whole('UEFI x64', WAITS))]);
  });
});

describe('the proxy DHCP of `metalflow boot`', () => {
  withNetwork();
  const startBoot = (): Running =>
    bench.start('proxy', process.execPath, [join(ROOT, 'dist', 'bin.js'), 'boot'], { METALFLOW_DATA_DIR: dir, METALFLOW_BIND_ADDRESS: PROXY!, METALFLOW_AGENT_URL: `https://${PROXY}:42114`, METALFLOW_PROXY_DHCP: 'on' });
  const ADDRESSES = ['dhcp-range=10.77.0.100,10.77.0.200,255.255.255.0'];

  test('adds the boot file to the address that dnsmasq gives; who boots its disk or is a stranger gets the address alone', async () => {
    await startDnsmasq(ADDRESSES);
    const boot = startBoot();
    await said(boot, 'proxy DHCP is up');
    expect(boot.log()).not.toContain('no DHCP server gave the probe an address');
    const heard = await ask({ asks: CLIENT_NAMES.map((name) => ({ name, mac: WAITS })), offers: 2, bootServer: PROXY! });
    for (const { name, offers, acknowledged } of heard) {
      const ours = { from: PROXY, address: NO_ADDRESS, nextServer: PROXY, file: fileOf(name, WAITS), vendorClass: name.startsWith('UEFI HTTP') ? 'HTTPClient' : 'PXEClient' };
      expect([name, offers]).toEqual([name, [expect.objectContaining({ from: DHCP, address: expect.stringMatching(/^10\.77\.0\.\d{3}$/), file: '' }), ours]]);
      expect([name, acknowledged]).toEqual([name, ours]);
    }
    // The last one is answered after all before it: an offer that came for them would have been heard by then.
    const asks = [RUNS, STRANGER].flatMap((mac) => (['BIOS PXE', 'UEFI HTTP x64', 'iPXE on UEFI'] as const).map((name) => ({ name, mac })));
    const alone = await ask({ asks: [...asks, { name: 'UEFI x64', mac: WAITS, offers: 2 }], offers: 1 });
    expect(alone.pop()!.offers.map(({ from }) => from)).toEqual([DHCP, PROXY]);
    for (const { name, mac, offers } of alone) expect([name, mac, offers.map(({ from }) => from)]).toEqual([name, mac, [DHCP]]);
  });

  test('does not start where another proxy answers, and names it', async () => {
    await startDnsmasq(['dhcp-range=10.77.0.0,proxy', 'pxe-service=x86PC,other,pxelinux', 'pxe-service=X86-64_EFI,other,other.efi']);
    const boot = startBoot();
    expect(await boot.ended).toBe(1);
    expect(boot.log()).toContain(`proxy_dhcp_not_alone: another proxy DHCP answers at ${DHCP}`);
  });

  test('starts without an address server, and says that no node will boot so', async () => {
    const boot = startBoot();
    await said(boot, 'proxy DHCP is up');
    expect(boot.log()).toContain('no DHCP server gave the probe an address');
  });

  test('names a DHCP server that hands out a boot file of its own', async () => {
    await startDnsmasq([...ADDRESSES, 'dhcp-boot=pxelinux.0']);
    const boot = startBoot();
    await said(boot, 'proxy DHCP is up');
    expect(boot.log()).toMatch(new RegExp(`"server":"${DHCP}".*names a boot file of its own`));
  });
});
