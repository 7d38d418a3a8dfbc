import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseCommandLine } from '../../src/agent/cmdline.js';
import { fileJournal, readJournal } from '../../src/agent/journal.js';
import { lldpduOf } from '../../src/agent/lldp-capture.js';
import { readLocalDisks } from '../../src/agent/local-disks.js';
import { createLocalMachine } from '../../src/agent/local-machine.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'metalflow-local-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (path: string, content: string | Buffer): void => {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), content);
};
/** A block device of sysfs: the folder with its sizes, and the link to the device that carries it. */
function putDisk(name: string, devicePath: string, files: Record<string, string | Buffer>): void {
  for (const [file, content] of Object.entries({ size: '2048\n', ro: '0\n', ...files })) put(file.startsWith('device/') ? `${devicePath}/${file.slice(7)}` : `block/${name}/${file}`, content);
  mkdirSync(join(folder, devicePath), { recursive: true });
  symlinkSync(join(folder, devicePath), join(folder, 'block', name, 'device'));
}
const vpd80 = (serial: string): Buffer => Buffer.concat([Buffer.from([0, 0x80, 0, serial.length]), Buffer.from(serial)]);

describe('the inventory of a Linux machine', () => {
  it('tells serial, WWN, model, size and bus of each disk, and leaves out what is none', async () => {
    putDisk('nvme0n1', 'devices/pci0000:00/0000:00:1d.0/nvme/nvme0', { size: '1000215216\n', wwid: 'eui.0025385971b0c1d2\n', 'device/serial': 'S4EWNX0R123456      \n', 'device/model': 'SAMSUNG MZVLB512\n' });
    putDisk('sda', 'devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0', { 'device/vpd_pg80': vpd80('  WD-WX11A1234567'), 'device/wwid': 'naa.50014ee2b1234567\n', 'device/model': 'WDC WD10EZEX\n' });
    putDisk('sdb', 'devices/pci0000:00/0000:05:00.0/host7/rport-7:0-1/target7:0:1/7:0:1:0', { 'device/vpd_pg80': vpd80('LUN1') });
    putDisk('vda', 'devices/pci0000:00/0000:00:04.0/virtio2', { serial: 'demo-1\n' });
    putDisk('sdc', 'devices/pci0000:00/usb1/1-1/host8/target8:0:0/8:0:0:0', { size: '0\n' });
    putDisk('sdd', 'devices/pci0000:00/ata2/host1', { ro: '1\n' });
    for (const name of ['loop0', 'sr0', 'dm-0', 'md127', 'zram0']) put(`block/${name}/size`, '2048\n');
    const disks = await readLocalDisks({ sys: folder });
    expect(disks.map(({ open: _, ...facts }) => facts)).toEqual([
      { name: 'nvme0n1', serial: 'S4EWNX0R123456', wwn: 'eui.0025385971b0c1d2', model: 'SAMSUNG MZVLB512', sizeBytes: 512_110_190_592, bus: 'nvme' },
      { name: 'sda', serial: 'WD-WX11A1234567', wwn: '0x50014ee2b1234567', model: 'WDC WD10EZEX', sizeBytes: MIB, bus: 'sata' },
      { name: 'sdb', serial: 'LUN1', model: '', sizeBytes: MIB, bus: 'fc' },
      { name: 'vda', serial: 'demo-1', model: '', sizeBytes: MIB, bus: 'virtio' },
    ]);
  });
});
const MIB = 1024 * 1024;

describe('the machine itself', () => {
  beforeEach(() => {
    put('class/dmi/id/product_uuid', '4C4C4544-0042-3510-8051-B4C04F4A4D31\n');
    put('class/net/lo/address', '00:00:00:00:00:00\n');
    put('class/net/eth0/address', '02:01:48:aa:bb:0c\n');
    put('class/net/eth0/operstate', 'up\n');
    put('class/net/eth1/address', '02:01:48:aa:bb:0d\n');
    put('class/net/eth1/operstate', 'down\n');
  });
  const create = (bootMac: string | null) => createLocalMachine({ bootMac, sys: folder, journalPath: join(folder, 'journal') });

  it('is named by its firmware and by the NIC of the boot', async () => {
    await expect(create('02:01:48:aa:bb:0d')).resolves.toMatchObject({ systemUuid: '4c4c4544-0042-3510-8051-b4c04f4a4d31', bootMac: '02:01:48:aa:bb:0d' });
    await expect(create(null)).resolves.toMatchObject({ bootMac: '02:01:48:aa:bb:0c' });
  });

  it('does not guess: a NIC that is not there, two that are up, or no UUID is an error', async () => {
    await expect(create('02:00:00:00:00:01')).rejects.toMatchObject({ code: 'setting_invalid' });
    put('class/net/eth1/operstate', 'up\n');
    await expect(create(null)).rejects.toMatchObject({ code: 'setting_invalid' });
    put('class/dmi/id/product_uuid', '00000000-0000-0000-0000-000000000000\n');
    await expect(create('02:01:48:aa:bb:0d')).rejects.toMatchObject({ code: 'setting_invalid' });
  });

  it('leaves the boot order alone where the firmware is a BIOS', async () => {
    const machine = await create(null);
    await expect(machine.setNextBoot({ name: 'sda', serial: 'S1', model: '', sizeBytes: 1, bus: 'sata', open: async () => Promise.reject(new Error('not to be opened')) })).resolves.toContain('BIOS');
  });
});

describe('the kernel command line', () => {
  it.each([
    ['metalflow_url=https://10.0.0.1:42114 hw_addr=02-01-48-AA-BB-0C', { url: 'https://10.0.0.1:42114', bootMac: '02:01:48:aa:bb:0c' }],
    ['quiet worker_id=02:01:48:aa:bb:0c metalflow_url=http://a/b?c=d\n', { url: 'http://a/b?c=d', bootMac: '02:01:48:aa:bb:0c' }],
    ['metalflow_url=http://a worker_id=machine-7', { url: 'http://a', bootMac: null }],
    ['metalflow_url=http://old metalflow_url=http://new', { url: 'http://new', bootMac: null }],
  ])('%j is read', (text, expected) => {
    expect(parseCommandLine(text)).toEqual(expected);
  });
  it.each(['', 'quiet', 'metalflow_url=', 'metalflow_url=ftp://a', 'metalflow_url=file:///etc', 'metalflow_url'])('%j is refused', (text) => {
    expect(() => parseCommandLine(text)).toThrow(/metalflow_url/);
  });
});

describe('a captured LLDP frame', () => {
  const frame = Buffer.from('0180c200000e0201480000018 8cc0207040cdb000102030405'.replace(' ', ''), 'hex');
  const pcap = (content: Buffer, length = content.length): Buffer => {
    const header = Buffer.alloc(40);
    header.writeUInt32LE(0xa1b2c3d4, 0);
    header.writeUInt32LE(length, 32);
    return Buffer.concat([header, content]);
  };
  it('gives what follows its ethertype', () => {
    expect(lldpduOf(pcap(frame))!.toString('hex')).toBe('0207040cdb000102030405');
  });
  it.each([['nothing', Buffer.alloc(0)], ['half a frame', pcap(frame).subarray(0, 50)], ['a length that lies', pcap(frame, 4_000_000_000)], ['another protocol', pcap(Buffer.alloc(60))]])('%s gives none', (_, bytes) => {
    expect(lldpduOf(bytes)).toBeNull();
  });
});

describe('the journal', () => {
  it('outlives the process that wrote it, and a line that a kill cut short', () => {
    const path = join(folder, 'run/journal.ndjson');
    fileJournal(path).journal({ at: '2026-11-30T00:00:00Z', orderId: 'o1', action: 'wipe-disk', what: 'started', disk: 'S1' });
    appendFileSync(path, '{"orderId":"o2","what":"star');
    const later = fileJournal(path);
    expect([later.wasStarted('o1'), later.wasStarted('o2'), later.wasStarted('o3')]).toEqual([true, false, false]);
  });

  it('does not glue an entry to a line that was cut short', () => {
    const path = join(folder, 'journal.ndjson');
    writeFileSync(path, '{"orderId":"o1","what":"star');
    fileJournal(path).journal({ at: '2026-11-30T00:00:00Z', orderId: 'o2', action: 'reboot', what: 'started' });
    expect(readJournal(path).map(({ orderId }) => orderId)).toEqual(['o2']);
  });

  it('takes an order as begun only by its own `started`', () => {
    const { journal, wasStarted } = fileJournal(join(folder, 'journal.ndjson'));
    journal({ at: '2026-11-30T00:00:00Z', orderId: 'o1', action: 'wipe-disk', what: 'done' });
    expect(wasStarted('o1')).toBe(false);
  });
});
