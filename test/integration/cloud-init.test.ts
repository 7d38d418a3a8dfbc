/** Debian's cloud-init, which was not written for us, reads a node's metadata from the store behind the real service. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DeviceMetadata } from '../../src/contracts/metadata.js';
import type { RunPlan } from '../../src/contracts/plan.js';
import type { FenceRef } from '../../src/contracts/store.js';
import { cloudInit, needCloudInit, type CloudInitFound } from '../support/cloud-init/cloud-init.js';
import { closeMetadata, KEY, openMetadata, type MetadataServer } from '../support/metadata-server.js';
import { MAC, StoreBench, UUID } from '../support/store-bench.js';


const USER_DATA = '#cloud-config\r\nruncmd: ["echo  käse"]\r\n\t# {{ "{{" }} v1.local_hostname }}\n';
const AS_SERVED = Buffer.from(USER_DATA.replace('{{ "{{" }}', '{{'));
const SECRET = '#cloud-config\npassword: hunter2\n';
const CLASS_KEY = 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ two words';
const TOLD: DeviceMetadata = {
  tags: ['gpu'], primary: ['127.0.0.1'], sshKeys: [KEY], userData: null, network: { gateways: ['10.0.1.1'], nameservers: ['10.0.1.53'], search: ['example.org'] },
  interfaces: [{ name: 'eno1', mac: MAC, addresses: ['10.0.1.7/24', '10.0.1.70/24'] }, { name: 'eno2', mac: '02:01:48:aa:bb:0d', addresses: ['192.0.2.7/28'] }],
};

let bench: StoreBench;
let seeds: string;
let metadata: MetadataServer;
let run: FenceRef;
let installCode: string;
beforeAll(async () => {
  await needCloudInit();
  bench = await StoreBench.open();
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.clean();
  seeds = await mkdtemp(join(tmpdir(), 'metalflow-seeds-'));
  await mkdir(join(seeds, 'seeds', 'cloud-init-nocloud'), { recursive: true });
  await mkdir(join(seeds, 'secrets', 'user-data'), { recursive: true });
  await writeFile(join(seeds, 'seeds', 'cloud-init-nocloud', 'user-data'), USER_DATA);
  await writeFile(join(seeds, 'secrets', 'user-data', 'web'), SECRET);
  await declare();
  await provision();
});
afterEach(async () => {
  await closeMetadata();
  await rm(seeds, { recursive: true, force: true });
});

/** The node has the address that cloud-init asks from. */
const declare = (extra: Partial<DeviceMetadata> = {}, address = '127.0.0.1'): Promise<unknown> => bench.declare({ name: 'node: 7 #x', addresses: [address], metadata: { ...TOLD, ...extra } });

/** A run whose boot has attested, with its install code. */
async function provision(confirmBy: RunPlan['confirmBy'] = 'phone-home'): Promise<void> {
  const ref = await bench.begin('reprovision');
  const plan: RunPlan = {
    deviceId: '7', nodeName: 'node-7', run: ref.run, kind: 'reprovision', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: true, netboots: true, nodeClass: 'web', payload: 'cloud-init-nocloud',
    template: 'install', image: null, diskRule: {}, rootDisk: null, wipeDisks: ['S1'], actions: [], seed: null, sshKeys: [CLASS_KEY], allowUnproven: false, confirmBy,
  };
  await bench.store.runs.pinPlan(ref, plan);
  run = ref;
  installCode = (await bench.boot(ref)).installCode!;
}

async function open(tokenPolicy: 'optional' | 'required' = 'optional'): Promise<string> {
  const { store } = bench;
  metadata = await openMetadata({
    directory: store.metadata, orders: store.orderDesk, seeds: store.seeds, seedsFolder: join(seeds, 'seeds'), secretsFolder: join(seeds, 'secrets'), tokenPolicy, trustedProxies: [], now: () => bench.now(),
  });
  return `http://127.0.0.1:${metadata.port}`;
}
/** It asks for so many seconds: long where it finds something, short where it has to give up. */
const ec2 = (url: string, maxWait = 60): Record<string, unknown> => ({ strict_id: false, metadata_urls: [url], max_wait: maxWait, timeout: 30 });
const noCloud = (seedfrom: string): Record<string, unknown> => ({ seedfrom, fs_label: null });
const found = async (request: Parameters<typeof cloudInit>[0]): Promise<CloudInitFound> => {
  const { found, log } = await cloudInit(request);
  if (!found) throw new Error(`cloud-init found nothing:\n${log}`);
  return found;
};

describe.each([
  ['IMDSv1, as on any machine', false, 'optional' as const],
  ['IMDSv2, as where firmware says EC2', true, 'optional' as const],
  ['IMDSv2 where the site requires it', true, 'required' as const],
])('DataSourceEc2 with %s', (_, aws, policy) => {
  test('finds what is served', async () => {
    const url = await open(policy);
    const node = await found({ source: 'Ec2', settings: ec2(url), aws, macs: { [MAC]: 'eth0', '02:01:48:aa:bb:0d': 'eth1' } });
    expect(node).toMatchObject({ instanceId: `${UUID}-1`, hostname: 'node: 7 #x', zone: 'lab', token: aws });
    expect(node.metadata).toMatchObject({
      'local-hostname': 'node: 7 #x', 'local-ipv4': '127.0.0.1', mac: MAC, tags: 'gpu', plan: 'web', facility: 'lab', placement: { 'availability-zone': 'lab' },
      network: { interfaces: { macs: { [MAC]: { 'local-ipv4s': ['10.0.1.7', '10.0.1.70'], 'subnet-ipv4-cidr-block': '10.0.1.0/24', 'device-number': '0' }, '02:01:48:aa:bb:0d': { 'local-ipv4s': '192.0.2.7' } } } },
    });
    expect([...node.keys].sort()).toEqual([CLASS_KEY, KEY].sort());
    expect(node.userData.equals(AS_SERVED)).toBe(true);
    expect(node.network).toMatchObject({ ethernets: { eth0: { match: { macaddress: MAC }, dhcp4: true, addresses: ['10.0.1.70/24'] }, eth1: { dhcp4: true } } });
  });
});

test('DataSourceEc2 gives up cleanly on v1 where the site requires tokens, and for a node that nobody declares (M1)', async () => {
  expect((await cloudInit({ source: 'Ec2', settings: ec2(await open('required'), 2) })).found).toBeNull();
  await declare({}, '10.0.1.7');
  for (const aws of [false, true]) {
    const { found, log } = await cloudInit({ source: 'Ec2', settings: ec2(await open(), 2), aws });
    expect(found).toBeNull();
    expect(log).toContain('404');
    expect(log).not.toMatch(/\b500\b/);
  }
});

test('DataSourceEc2 comes up without the user-data that an address alone is not shown', async () => {
  await declare({ userData: 'secret:web' });
  const { found, log } = await cloudInit({ source: 'Ec2', settings: ec2(await open()) });
  expect(found).toMatchObject({ instanceId: `${UUID}-1` });
  expect(found!.userData).toHaveLength(0);
  expect(log).toContain('401');
  expect(log + metadata.logged()).not.toContain('hunter2');
});

describe('DataSourceNoCloud with seedfrom', () => {
  test('finds what is served (M3)', async () => {
    const url = await open();
    // phone_home needs the code; without it vendor-data would be refused.
    const node = await found({ source: 'NoCloud', settings: noCloud(`${url}/nocloud/${UUID}/%s?code=${installCode}`) });
    expect(node).toMatchObject({ instanceId: `${UUID}-1`, hostname: 'node: 7 #x', keys: [CLASS_KEY, KEY] });
    expect(node.userData.equals(AS_SERVED)).toBe(true);
    expect(node.vendorData.toString()).toContain(`/v1/seen/${UUID}?code=${installCode}`);
    expect(metadata.logged()).not.toContain(installCode);
  });

  test('takes a URL that ends in a slash, by the address alone, and sees a new instance-id after a reprovision (M3)', async () => {
    await bench.store.runs.close('7', run.run, { end: 'done', failure: null, destroyed: true } as never, run);
    await provision('seed-written');
    const node = await found({ source: 'NoCloud', settings: noCloud(`${await open()}/nocloud/${UUID}/`) });
    expect(node).toMatchObject({ instanceId: `${UUID}-2`, metadata: { 'local-hostname': 'node: 7 #x' } });
    expect(node.userData.equals(AS_SERVED)).toBe(true);
    expect(node.vendorData).toHaveLength(0);
  });

  test('reads secret user-data with the install code', async () => {
    await declare({ userData: 'secret:web' });
    const node = await found({ source: 'NoCloud', settings: noCloud(`${await open()}/nocloud/${UUID}/%s?code=${installCode}`) });
    expect(node.userData.toString()).toBe(SECRET);
    expect(metadata.logged()).not.toContain('hunter2');
  });

  test('gives up cleanly on a node that nobody declares (M1)', async () => {
    await declare({}, '10.0.1.7');
    const { found, log } = await cloudInit({ source: 'NoCloud', settings: noCloud(`${await open()}/nocloud/${UUID}/`) });
    expect(found).toBeNull();
    expect(log).toContain('404');
  });
});

test('network-config is parsed as it is meant, put where a write-seed action would put it', async () => {
  const url = await open();
  const folder = await mkdtemp(join(tmpdir(), 'metalflow-cloud-init-'));
  try {
    await mkdir(join(folder, 'seed', 'nocloud'), { recursive: true });
    for (const name of ['meta-data', 'user-data', 'vendor-data', 'network-config']) {
      const reply = await fetch(`${url}/nocloud/${UUID}/${name}?code=${installCode}`);
      expect({ name, status: reply.status }).toEqual({ name, status: 200 });
      await writeFile(join(folder, 'seed', 'nocloud', name), Buffer.from(await reply.arrayBuffer()));
    }
    const node = await found({ source: 'NoCloud', settings: { fs_label: null }, local: true, folder });
    expect(node).toMatchObject({ instanceId: `${UUID}-1`, network: { version: 2 } });
    expect(node.networks).toEqual([
      { name: 'eno1', mac: MAC, subnets: [{ type: 'static', address: '10.0.1.7/24', nameservers: ['10.0.1.53'] }, { type: 'static', address: '10.0.1.70/24', nameservers: [] }], routes: ['0.0.0.0/0 via 10.0.1.1'] },
      { name: 'eno2', mac: '02:01:48:aa:bb:0d', subnets: [{ type: 'static', address: '192.0.2.7/28', nameservers: [] }], routes: [] },
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
