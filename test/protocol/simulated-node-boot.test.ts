import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { MAC, SCRIPT_PATH, serveNetboot, soon, startNodeBench, UUID, type NodeBench } from '../support/node-bench.js';

let bench: NodeBench;
afterEach(() => bench.close());
const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

describe('a simulated node that boots from the network', () => {
  test('asks for the size, gives that up, fetches the file, runs the script, and starts its agent', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    const node = bench.node({ lldpFrame: Buffer.from('0207', 'hex') });
    const states: string[] = [];
    node.events.on('state', ({ name }) => states.push(name));
    await node.powerOn('network');
    const state = await node.waitFor('netboot-system', soon());

    expect(states).toEqual(['firmware', 'ipxe', 'netboot-system']);
    expect(state).toEqual({ name: 'netboot-system', bootMac: MAC, commandLine: `metalflow_url=${bench.url} hw_addr=${MAC} worker_id=${MAC}` });
    expect(bench.tftp.heard.filter((text) => !text.startsWith('ack'))).toEqual([`rrq ${MAC}/ipxe.efi`, 'error 8', `rrq ${MAC}/ipxe.efi`]);
    expect(bench.requests).toEqual([`GET ${SCRIPT_PATH}`, 'GET /assets/vmlinuz', 'GET /assets/initramfs']);
    expect(node.journal().filter(({ event }) => event === 'boot-file' || event === 'image')).toEqual([
      expect.objectContaining({ bytes: 5000, sha256: sha256(Buffer.alloc(5000, 'ipxe')) }),
      expect.objectContaining({ name: 'vmlinuz', sha256: sha256('a kernel') }),
      expect.objectContaining({ name: 'initrd', sha256: sha256('an initrd') }),
    ]);
    const [{ machine, api }] = bench.agents as [NodeBench['agents'][number]];
    expect({ api, uuid: machine.systemUuid, mac: machine.bootMac, lldp: await machine.lldpFrame() }).toEqual({ api: bench.url, uuid: UUID, mac: MAC, lldp: Buffer.from('0207', 'hex') });
    expect(await machine.disks()).toMatchObject([{ name: 'vda', serial: 'S1', sizeBytes: 4 * 1024 * 1024, bus: 'virtio' }]);
  });

  test.each([
    ['refused', 'refuse', /TFTP refused: netboot-not-allowed/],
    ['never answered', 'silent', /TFTP failed: no answer/],
    ['cut off', 'stall', /TFTP failed/],
    ['of another size than announced', 'lie', /TFTP failed: 5000 bytes where 5001 were announced/],
  ] as const)('goes to its disk when the boot file is %s, and halts when that is empty', async (_, habit, why) => {
    bench = await startNodeBench({ habit });
    const node = bench.node();
    await node.powerOn('network');
    expect(await node.waitFor('halted', soon())).toEqual({ name: 'halted', why: 'no bootable device' });
    expect(node.journal().filter(({ event }) => event === 'next-boot-device')).toEqual([
      expect.objectContaining({ after: 'network', why: expect.stringMatching(why) as string }),
      expect.objectContaining({ after: 'disk', why: 'S1: it has no partition table' }),
    ]);
    expect(bench.requests).toEqual([]);
  });

  test('goes to its disk when the boot file is empty', async () => {
    bench = await startNodeBench({ bootFile: Buffer.alloc(0) });
    const node = bench.node();
    bench.partition(node);
    await node.powerOn('network');
    expect(await node.waitFor('installed-system', soon())).toMatchObject({ serial: 'S1', seed: 'none' });
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['one byte', Buffer.from([0])],
    ['half an ERROR', Buffer.from([0, 5])],
    ['an OACK without an end', Buffer.from('\0\x06tsize')],
    ['an OACK of nonsense', Buffer.from('\0\x06__proto__\0x\0tsize\0-1\0')],
    ['an ACK', Buffer.from([0, 4, 0, 0])],
    ['DATA of block 7', Buffer.from([0, 3, 0, 7, 1])],
    ['DATA too long', Buffer.alloc(2000, 3)],
  ])('survives a TFTP server that answers %s', async (_, packet) => {
    bench = await startNodeBench({ habit: 'garbage', packets: [packet, packet] });
    const node = bench.node();
    await node.powerOn('network');
    expect(await node.waitFor('halted', soon())).toEqual({ name: 'halted', why: 'no bootable device' });
  });

  test.each([
    ['exits', '#!ipxe\necho netboot-not-allowed\nexit\n', /iPXE exited with 0/],
    ['is a web page', '<html></html>', /the first line is not #!ipxe/],
    ['names a command that there is not', '#!ipxe\nsanboot iscsi:x\n', /sanboot: command not found/],
    ['goes round for ever', '#!ipxe\n:a\ngoto a\n', /steps/],
    ['is a megabyte', `#!ipxe\n${'echo x\n'.repeat(150_000)}`, /more than 65536 bytes/],
    ['loads a kernel that is not there', '#!ipxe\nkernel /gone\nboot\n', /HTTP 404/],
    ['loads a kernel from a port where nobody is', '#!ipxe\nkernel http://127.0.0.1:1/k\nboot\n', /ECONNREFUSED/],
  ])('goes to its disk when the script %s', async (_, script, why) => {
    bench = await startNodeBench();
    bench.routes.set(SCRIPT_PATH, script);
    const node = bench.node();
    bench.partition(node);
    await node.powerOn('network');
    expect(await node.waitFor('installed-system', soon())).toMatchObject({ serial: 'S1' });
    expect(node.journal().find(({ event }) => event === 'next-boot-device')?.why).toMatch(why);
  });

  test('halts when the kernel was told no metalflow_url, and starts no agent', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    bench.routes.set(SCRIPT_PATH, '#!ipxe\nkernel /assets/vmlinuz quiet\nboot\n');
    const node = bench.node();
    await node.powerOn('network');
    expect(await node.waitFor('halted', soon())).toEqual({ name: 'halted', why: 'the kernel was told no metalflow_url' });
    expect(bench.agents).toEqual([]);
  });

  test('boots a unified kernel image, and tells its agent the plane it was given', async () => {
    bench = await startNodeBench();
    bench.routes.set(SCRIPT_PATH, '#!ipxe\nchain --autofree /assets/netboot.efi?mac=${mac} || exit\n');
    bench.routes.set(`/assets/netboot.efi?mac=${MAC}`, 'MZ signed');
    const node = bench.node({ agentApi: 'http://agent.example:42114' });
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    expect(bench.agents.map(({ api }) => api)).toEqual(['http://agent.example:42114']);
  });
});

describe('the power button of a simulated node', () => {
  test('ends a download midway, and the agent is never started', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    const cut = new Promise<void>((resolve) => bench.routes.set('/assets/initramfs', (_request, response) => {
      response.on('close', resolve).writeHead(200, { 'content-length': '1000000' }).write('a beginning');
    }));
    const node = bench.node();
    await node.powerOn('network');
    await bench.hears('GET /assets/initramfs');
    await node.powerOff();
    await cut;
    expect(node.state()).toEqual({ name: 'off' });
    expect(bench.agents).toEqual([]);
    expect(node.journal().at(-1)).toMatchObject({ event: 'state', state: 'off' });
  });

  test('ends a TFTP transfer midway, telling the server', async () => {
    bench = await startNodeBench({ habit: 'stall' });
    const node = bench.node({ firmware: { tftp: { host: '127.0.0.1', port: bench.tftp.port, timeoutMs: 60_000 }, bootFile: 'x', scriptUrl: bench.url } });
    await node.powerOn('network');
    await bench.tftp.hears(/ack 1/);
    await node.powerOff();
    await bench.tftp.hears(/error 0/);
    expect(node.state()).toEqual({ name: 'off' });
  });

  test('stops the agent before the call returns, and no byte is written afterwards', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    const node = bench.node();
    await node.powerOn('network');
    await node.waitFor('netboot-system', soon());
    const [agent] = bench.agents;
    const [disk] = await agent!.machine.disks();
    const handle = await disk!.open();
    await handle.write(0, Buffer.from('before'));
    const off = node.powerOff();
    expect(agent!.stopped).toBe(true);
    await expect(handle.write(0, Buffer.from('AFTER!'))).rejects.toThrow('no power');
    await expect(agent!.machine.setNextBoot(disk!)).rejects.toThrow('no power');
    await handle.close();
    await off;
    expect(readFileSync(node.disks()[0]!.path).toString('latin1', 0, 6)).toBe('before');
    expect(node.bootOrder()[0]).toEqual({ kind: 'network' });
  });

  test('pressed many times at once leaves the node as the last press says', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    const node = bench.node();
    const presses = [node.powerOn('network'), node.powerOff(), node.powerOff(), node.powerOn('network'), node.reset('network'), node.powerOn('disk')];
    await Promise.all(presses);
    await node.waitFor('netboot-system', soon());
    expect(bench.agents.filter(({ stopped }) => !stopped)).toHaveLength(1);
    await Promise.all([node.reset('network'), node.powerOff()]);
    expect(node.state()).toEqual({ name: 'off' });
    expect(bench.agents.filter(({ stopped }) => !stopped)).toHaveLength(0);
  });

  test('is dead once the node is closed, and whoever waits is told', async () => {
    bench = await startNodeBench();
    const node = bench.node();
    const waiting = expect(node.waitFor('ipxe', soon())).rejects.toThrow('closed');
    await node.close();
    await waiting;
    await node.powerOn('network');
    expect(node.state()).toEqual({ name: 'off' });
    expect(bench.tftp.heard).toEqual([]);
  });
});

describe('the folder of a simulated node', () => {
  test('is the machine: key, boot order, disks and journal are the same in a new object', async () => {
    bench = await startNodeBench();
    serveNetboot(bench);
    const first = bench.node();
    await first.powerOn('network');
    await first.waitFor('netboot-system', soon());
    const { machine } = bench.agents[0]!;
    const [disk] = await machine.disks();
    const handle = await disk!.open();
    await handle.write(1024 * 1024, Buffer.from('kept'));
    await handle.close();
    await machine.setNextBoot(disk!);
    machine.journal({ at: '', orderId: 'o1', action: 'wipe-disk', what: 'started', disk: 'S1' });
    await first.close();

    const second = bench.node();
    expect(second.bootOrder()[0]).toEqual({ kind: 'disk', serial: 'S1' });
    expect(second.journal()).toContainEqual(expect.objectContaining({ event: 'agent', orderId: 'o1', action: 'wipe-disk', what: 'started', disk: 'S1' }));
    expect(readFileSync(second.disks()[0]!.path).toString('latin1', 1024 * 1024, 1024 * 1024 + 4)).toBe('kept');
    await second.powerOn('network');
    await second.waitFor('netboot-system', soon());
    expect(bench.agents[1]!.machine.akPublic).toEqual(machine.akPublic);
    expect(bench.agents[1]!.machine.wasStarted('o1')).toBe(false);
  });

  test.each([
    ['a UUID that vendors leave unset', { systemUuid: '00000000-0000-0000-0000-000000000000' }],
    ['no NIC', { macs: [] }],
    ['a MAC that is none', { macs: ['nic'] }],
    ['a TFTP server by name', { firmware: { tftp: { host: 'localhost', port: 69 }, bootFile: 'x', scriptUrl: 'x' } }],
  ])('is refused with %s', async (_, options) => {
    bench = await startNodeBench();
    expect(() => bench.node(options)).toThrow(expect.objectContaining({ code: 'setting_invalid' }) as Error);
  });
});

test('netboots again after its agent asked for a restart, as its boot order says', async () => {
  bench = await startNodeBench();
  serveNetboot(bench);
  const node = bench.node();
  await node.powerOn('network');
  await node.waitFor('netboot-system', soon());
  const restarted = node.waitFor('firmware', soon());
  await bench.agents[0]!.machine.reboot();
  await restarted;
  await node.waitFor('netboot-system', soon());
  expect(bench.agents.map(({ stopped }) => stopped)).toEqual([true, false]);
});
