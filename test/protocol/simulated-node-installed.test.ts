import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { serveNetboot, soon, startNodeBench, UUID, type NodeBench } from '../support/node-bench.js';
import type { SimulatedNode } from '../../src/simulator/node/simulated-node.js';
import type { NodeState } from '../../src/simulator/node/node-state.js';

let bench: NodeBench;
afterEach(() => bench.close());
const CODE = 'c0de-of-the-installation';

const seedIs = (...progress: string[]) => (state: NodeState): boolean => state.name === 'installed-system' && progress.includes(state.seed);

/** A bench whose node has an installed disk with a fleet seed. The network refuses it, as for a node whose run is over. */
async function installed({ code = CODE }: { code?: string } = {}): Promise<SimulatedNode> {
  bench = await startNodeBench({ habit: 'refuse' });
  putFleetSeed(code);
  const node = bench.node();
  bench.partition(node);
  return node;
}
function putFleetSeed(installCode: string): void {
  const seed = { version: 1, systemUuid: UUID, seedUrl: `${bench.url}/v1/seed/${UUID}`, seenUrl: `${bench.url}/v1/seen/${UUID}`, installCode, nodeName: 'n1', instanceId: `${UUID}-1` };
  bench.diskFiles.set('efi:fleet-seed.json', Buffer.from(JSON.stringify(seed)));
}

describe('the installed system of a simulated node', () => {
  test('redeems its seed with the code as a bearer token, keeps it, and shows itself', async () => {
    const node = await installed();
    const headers: IncomingHttpHeaders[] = [];
    bench.routes.set(`/v1/seed/${UUID}`, (request, response) => {
      headers.push(request.headers);
      response.end('{"node":"n1"}');
    });
    bench.routes.set(`/v1/seen/${UUID}`, (request, response) => {
      headers.push(request.headers);
      response.writeHead(204).end();
    });
    await node.powerOn('disk');
    await node.waitFor(seedIs('taken'), soon());
    expect(bench.requests).toEqual([`GET /v1/seed/${UUID}`, `POST /v1/seen/${UUID}`]);
    expect(headers.map(({ authorization }) => authorization)).toEqual([`Bearer ${CODE}`, `Bearer ${CODE}`]);
    const [kept] = readdirSync(join(bench.dir, 'seeds'));
    expect(readFileSync(join(bench.dir, 'seeds', kept!), 'utf8')).toBe('{"node":"n1"}');
    expect(JSON.stringify(node.journal())).not.toContain(CODE);
  });

  test('redeems a seed once, and a reinstalled disk’s again', async () => {
    const node = await installed();
    bench.routes.set(`/v1/seed/${UUID}`, '{}');
    bench.routes.set(`/v1/seen/${UUID}`, '');
    await node.powerOn('disk');
    await node.waitFor(seedIs('taken'), soon());
    await node.powerOff();
    await node.powerOn('disk');
    await node.waitFor(seedIs('taken'), soon());
    expect(bench.requests).toHaveLength(2);
    putFleetSeed('another');
    await node.reset();
    await node.waitFor((state) => seedIs('taken')(state) && bench.requests.length === 4, soon());
    expect(bench.requests).toHaveLength(4);
  });

  test.each([
    ['503, 503, 200', [503, 503, 200], 'taken', 3],
    ['429, 200', [429, 200], 'taken', 2],
    ['503 for ever', [503, 503, 503, 503], 'not-got', 3],
    ['410', [410, 200], 'not-got', 1],
    ['401', [401, 200], 'not-got', 1],
  ] as const)('asks for its seed a bounded number of times: %s', async (_, answers, progress, asked) => {
    const node = await installed();
    const left: number[] = [...answers];
    bench.routes.set(`/v1/seed/${UUID}`, (_request, response) => void response.writeHead(left.shift()!).end('{}'));
    await node.powerOn('disk');
    await node.waitFor(seedIs('taken', 'not-got'), soon());
    expect(node.state()).toMatchObject({ seed: progress });
    expect(bench.requests.filter((request) => request.startsWith('GET'))).toHaveLength(asked);
  });

  test('waits no longer once the power is cut', async () => {
    const node = await installed();
    bench.routes.set(`/v1/seed/${UUID}`, () => undefined);
    await node.powerOn('disk');
    await bench.hears(`GET /v1/seed/${UUID}`);
    await node.powerOff();
    expect(node.state()).toEqual({ name: 'off' });
    expect(node.journal().at(-1)).toMatchObject({ state: 'off' });
  });

  test('runs without a seed that it cannot read, and journals why', async () => {
    const node = await installed();
    bench.diskFiles.set('efi:fleet-seed.json', Buffer.from('{"version":1'));
    await node.powerOn('disk');
    expect(await node.waitFor('installed-system', soon())).toMatchObject({ seed: 'not-got' });
    expect(node.journal()).toContainEqual(expect.objectContaining({ event: 'seed-unreadable', why: 'fleet-seed.json is no JSON' }));
    expect(bench.requests).toEqual([]);
  });

  test('of cloud-init phones home as its vendor-data asks, with the code kept out of the journal', async () => {
    bench = await startNodeBench({ habit: 'refuse' });
    const nocloud = (name: string, text: string): unknown => bench.diskFiles.set(`root:var/lib/cloud/seed/nocloud/${name}`, Buffer.from(text));
    nocloud('meta-data', `instance-id: "${UUID}-1"\nlocal-hostname: n1\n`);
    nocloud('user-data', '#cloud-config\n');
    nocloud('vendor-data', `#cloud-config\nphone_home:\n  url: ${bench.url}/v1/seen/${UUID}?code=${CODE}\n  post: all\n`);
    const bodies: string[] = [];
    bench.routes.set(`/v1/seen/${UUID}?code=${CODE}`, (request, response) => {
      bodies.push(`${request.headers['content-type']} ${request.text}`);
      response.writeHead(204).end();
    });
    const node = bench.node();
    bench.partition(node);
    await node.powerOn('disk');
    await node.waitFor(seedIs('taken'), soon());
    expect(bodies).toEqual([`application/x-www-form-urlencoded instance_id=${UUID}-1&hostname=n1&fqdn=n1`]);
    expect(JSON.stringify(node.journal())).not.toContain(CODE);
  });
});

describe('a simulated node that misbehaves', () => {
  const netboot = async (): Promise<SimulatedNode> => {
    bench = await startNodeBench();
    serveNetboot(bench);
    return bench.node();
  };

  test('whose NIC has no link never asks for a boot file', async () => {
    const node = await netboot();
    node.setBehaviours({ neverBootsNetwork: true });
    await node.powerOn('network');
    await node.waitFor('halted', soon());
    expect(bench.tftp.heard).toEqual([]);
  });

  test('whose firmware ignores orders boots its disk, though it was told to netboot once', async () => {
    const node = await netboot();
    bench.partition(node);
    node.setBehaviours({ bootsDiskAlways: true });
    await node.powerOn('network');
    expect(await node.waitFor('installed-system', soon())).toMatchObject({ serial: 'S1' });
    expect(bench.tftp.heard).toEqual([]);
  });

  test('whose agent is silent comes up without one', async () => {
    const node = await netboot();
    node.setBehaviours({ silentAgent: true });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    expect(bench.agents).toEqual([]);
  });

  test('attests with another UUID, and has a disk more', async () => {
    const node = await netboot();
    const wrongUuid = '0e4c1a52-0000-4000-8000-00000000dead';
    node.setBehaviours({ wrongUuid, secondDisk: { name: 'vdb', serial: 'S2', model: 'simulated', sizeBytes: 4 * 1024 * 1024, bus: 'virtio' } });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    const { machine } = bench.agents[0]!;
    expect(machine.systemUuid).toBe(wrongUuid);
    expect((await machine.disks()).map(({ serial }) => serial)).toEqual(['S1', 'S2']);
    expect(() => node.setBehaviours({ secondDisk: { name: 'vda', serial: 'S1', model: 'm', sizeBytes: 4 * 1024 * 1024, bus: 'virtio' } })).toThrow(/same serial/);
  });

  test.each([
    ['as it starts', undefined, ''],
    ['after 10 bytes', 10, '0123456701'],
    ['after 16 bytes', 16, '0123456701234567'],
  ])('dies at write-image %s: those bytes are on the disk, and no more', async (_, afterBytes, onDisk) => {
    const node = await netboot();
    node.setBehaviours({ dieAt: { action: 'write-image', ...(afterBytes !== undefined && { afterBytes }) } });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    const { machine } = bench.agents[0]!;
    const [disk] = await machine.disks();
    const handle = await disk!.open();
    machine.journal({ at: '', orderId: 'o0', action: 'wipe-disk', what: 'started' });
    await handle.write(0, Buffer.alloc(64));
    machine.journal({ at: '', orderId: 'o1', action: 'write-image', what: 'started' });
    const writes = [0, 8, 16, 24].map((at) => () => handle.write(at, Buffer.from('01234567')));
    await expect(writes.reduce((before, write) => before.then(write), Promise.resolve())).rejects.toThrow('no power');
    await handle.close();
    expect(bench.agents[0]!.stopped).toBe(true);
    expect(node.state()).toEqual({ name: 'halted', why: `died at write-image after ${afterBytes ?? 0} bytes` });
    expect(readFileSync(node.disks()[0]!.path).toString('latin1', 0, 64)).toBe(onDisk.padEnd(64, '\0'));
  });

  test('is slow in its downloads and on its disks by a clock that only counts', async () => {
    let slept = 0;
    bench = await startNodeBench();
    serveNetboot(bench);
    const node = bench.node({ sleep: async (ms) => void (slept += ms), behaviours: { slowBytesPerSecond: 1000 } });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    const downloaded = bench.requests.length;
    expect(downloaded).toBe(3);
    const before = slept;
    expect(before).toBeGreaterThanOrEqual('a kernel'.length + 'an initrd'.length);
    const [disk] = await bench.agents[0]!.machine.disks();
    const handle = await disk!.open();
    await handle.write(0, Buffer.alloc(500));
    await handle.read(0, 250);
    await handle.close();
    expect(slept - before).toBe(750);
  });

  test('lets its agent learn late that an action is over', async () => {
    const slept: number[] = [];
    bench = await startNodeBench();
    serveNetboot(bench);
    const node = bench.node({ sleep: async (ms) => void slept.push(ms), behaviours: { lateReport: 90_000 } });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    const [disk] = await bench.agents[0]!.machine.disks();
    await (await disk!.open()).close();
    await bench.agents[0]!.machine.setNextBoot(disk!);
    expect(slept).toEqual([90_000, 90_000]);
    expect(node.bootOrder()[0]).toEqual({ kind: 'disk', serial: 'S1' });
  });
});
