/** The simulated node against the real boot plane, with the real agent in it: only the agent plane is a stand-in. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootGate } from '../../src/boot/gate.js';
import { createBootHttp } from '../../src/boot/http.js';
import { placeholderBinary } from '../../src/boot/ipxe/binaries.js';
import { BootSettings } from '../../src/boot/settings.js';
import { startTftpServer } from '../../src/boot/tftp/server.js';
import { createSimulatedNode, type SimulatedNode } from '../../src/simulator/node/simulated-node.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { AgentPlane, orderOf } from '../support/agent-plane.js';
import { bootSubject, fakeBootDirectory, NOW, permitted, type FakeBootDirectory } from '../support/boot-directory.js';
import { MAC, soon, UUID } from '../support/node-bench.js';
import { agentWiring } from '../support/node-wiring.js';
import { bootFolder } from '../support/tftp-server.js';

const MIB = 1024 * 1024;
const images = join(process.cwd(), 'demo/images');
interface DemoImage { payload: string; file: string; sha256: string; sizeBytes: number; unpackedBytes: number; contentDigest: string }
const imageOf = (payload: string): DemoImage => (JSON.parse(readFileSync(join(images, 'index.json'), 'utf8')) as DemoImage[]).find((image) => image.payload === payload)!;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startBootPlane(agentUrl: string): Promise<{ directory: FakeBootDirectory; firmware: { tftp: { host: string; port: number }; bootFile: string; scriptUrl: string } }> {
  const log = silentLogger();
  const directory = fakeBootDirectory();
  const gate = createBootGate({ directory, unknownMac: 'disk', now: () => NOW, log });
  const root = await bootFolder({ 'vmlinuz-x86_64': 'a kernel', 'initramfs-x86_64': 'an initrd' });
  const binaries = createBootFiles({ roots: [], inMemory: new Map([['ipxe.efi', placeholderBinary('ipxe.efi')]]), log });
  const tftp = await startTftpServer({ gate, files: binaries, address: '127.0.0.1', port: 0, log });
  const http = createBootHttp({ gate, directory, settings: BootSettings.parse({ agentUrl }), assetsDir: root.root, binaries, log, ready: async () => undefined });
  await http.listen({ host: '127.0.0.1', port: 0 });
  closers.push(() => root.remove(), () => http.close(), () => tftp.close());
  const scriptUrl = `http://127.0.0.1:${(http.server.address() as AddressInfo).port}/ipxe/script/<mac>/auto.ipxe`;
  return { directory, firmware: { tftp: { host: '127.0.0.1', port: tftp.port }, bootFile: '<mac>/ipxe.efi', scriptUrl } };
}

async function setUp(): Promise<{ plane: AgentPlane; node: SimulatedNode; directory: FakeBootDirectory }> {
  const plane = await new AgentPlane().start();
  closers.push(() => plane.stop());
  const { directory, firmware } = await startBootPlane(plane.url);
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-node-'));
  closers.push(() => rmSync(dir, { recursive: true, force: true }));
  const node = createSimulatedNode({
    dir, systemUuid: UUID, macs: [MAC], firmware, log: silentLogger(),
    disks: [{ name: 'vda', serial: 'S1', model: 'simulated', sizeBytes: 32 * MIB, bus: 'virtio' }],
    seed: { delayMs: 0, tries: 3, everyMs: 0 },
    ...agentWiring({ waitSeconds: 0 }),
  });
  closers.push(() => node.close());
  return { plane, node, directory };
}

/** Where the installed system redeems its code, or phones home. */
async function startSeedPlane(): Promise<{ url: string; heard: string[] }> {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    heard.push(`${request.method} ${request.url} ${request.headers.authorization ?? '-'}`);
    response.end('{}');
    request.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

async function install(payload: string, place: 'efi' | 'nocloud', seedFiles: AgentPlane['seedFiles']): Promise<{ node: SimulatedNode; plane: AgentPlane }> {
  const { plane, node, directory } = await setUp();
  directory.devices.set(MAC, permitted());
  const image = imageOf(payload);
  plane.assets.set('/image', (_request, response) => response.end(readFileSync(join(images, image.file))));
  plane.seedFiles = seedFiles;
  const disk = { serial: 'S1' };
  const orders = [
    orderOf({ name: 'wipe-disk', disk }),
    orderOf({ name: 'write-image', disk, url: `${plane.url}/image`, sha256: image.sha256, sizeBytes: image.sizeBytes, compression: 'gzip', unpackedBytes: image.unpackedBytes, contentDigest: image.contentDigest }),
    orderOf({ name: 'write-seed', disk, place }),
    orderOf({ name: 'set-next-boot', disk }),
    orderOf({ name: 'reboot' }),
  ];
  plane.orders.push(...orders);
  await node.powerOn('network');
  await node.waitFor('netboot-system', soon());
  expect(directory.seen).toEqual(['attempt-1']);
  await node.waitFor((state) => state.name === 'installed-system' && state.seed !== 'awaited', soon());
  expect(orders.map(({ orderId }) => plane.reports.get(orderId)?.result)).toEqual(orders.map(() => 'succeeded'));
  return { node, plane };
}

test('a node is netbooted, installed, restarted, and redeems the seed that its agent placed', async () => {
  const { url, heard } = await startSeedPlane();
  const seed = { version: 1, systemUuid: UUID, seedUrl: `${url}/v1/seed/${UUID}`, seenUrl: `${url}/v1/seen/${UUID}`, installCode: '@INSTALL_CODE@', nodeName: 'n1', instanceId: `${UUID}-1` };
  const { node } = await install('talos', 'efi', [{ path: 'fleet-seed.json', content: JSON.stringify(seed), mode: 0o600 }]);
  expect(node.state()).toEqual({ name: 'installed-system', serial: 'S1', seed: 'taken' });
  expect(heard).toEqual([`GET /v1/seed/${UUID} Bearer code-0123456789`, `POST /v1/seen/${UUID} Bearer code-0123456789`]);
  expect(node.journal().filter(({ event, what }) => event === 'agent' && what === 'started').map(({ action }) => action)).toEqual(['wipe-disk', 'write-image', 'write-seed', 'set-next-boot', 'reboot']);
});

test('a cloud-init node phones home from the seed on its root file system', async () => {
  const { url, heard } = await startSeedPlane();
  const { node } = await install('cloud-init-nocloud', 'nocloud', [
    { path: 'meta-data', content: `instance-id: "${UUID}-1"\nlocal-hostname: n1\n`, mode: 0o600 },
    { path: 'user-data', content: '#cloud-config\n', mode: 0o600 },
    { path: 'vendor-data', content: `#cloud-config\nphone_home:\n  url: ${url}/v1/seen/${UUID}?code=@INSTALL_CODE@\n  post: all\n`, mode: 0o600 },
  ]);
  expect(node.state()).toEqual({ name: 'installed-system', serial: 'S1', seed: 'taken' });
  expect(heard).toEqual([`POST /v1/seen/${UUID}?code=code-0123456789 -`]);
});

test('a device without permission is refused by the gate, and its empty disk does not boot', async () => {
  const { plane, node, directory } = await setUp();
  directory.devices.set(MAC, bootSubject({ state: 'active' }));
  await node.powerOn('network');
  expect(await node.waitFor('halted', soon())).toEqual({ name: 'halted', why: 'no bootable device' });
  expect(node.journal().find(({ event }) => event === 'next-boot-device')?.why).toBe('TFTP refused: netboot-not-allowed');
  expect([plane.seen, directory.seen]).toEqual([[], []]);
});

test('a node that dies in the middle of its image writes nothing more, reports nothing, and attests anew after a reset', async () => {
  const { plane, node, directory } = await setUp();
  directory.devices.set(MAC, permitted());
  const image = imageOf('talos');
  plane.assets.set('/image', (_request, response) => response.end(readFileSync(join(images, image.file))));
  const order = orderOf({ name: 'write-image', disk: { serial: 'S1' }, url: `${plane.url}/image`, sha256: image.sha256, sizeBytes: image.sizeBytes, compression: 'gzip', unpackedBytes: image.unpackedBytes });
  plane.orders.push(order);
  node.setBehaviours({ dieAt: { action: 'write-image', afterBytes: MIB } });
  await node.powerOn('network');
  expect(await node.waitFor('halted', soon())).toEqual({ name: 'halted', why: `died at write-image after ${MIB} bytes` });
  expect(plane.reports.has(order.orderId)).toBe(false);
  node.setBehaviours({ dieAt: undefined });
  await node.reset('network');
  await plane.until(() => plane.of('attest').length === 2, 'a second attestation');
  expect(plane.reports.has(order.orderId)).toBe(false);
});
