import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPublicKey, verify } from 'node:crypto';
import { openAttestationKey } from '../../src/simulator/node/attestation-key.js';
import { bootDevices } from '../../src/simulator/node/boot-devices.js';
import { lookAtDisk, openDiskFiles } from '../../src/simulator/node/disk-file.js';
import { findSeed, readFleetSeed, readNocloudSeed, type ReadDiskFile } from '../../src/simulator/node/installed/seed.js';
import { openJournal } from '../../src/simulator/node/journal.js';
import { parseCommandLine, startNetbootSystem } from '../../src/simulator/node/netboot-system.js';
import { FACTORY_BOOT_ORDER, openNvram } from '../../src/simulator/node/nvram.js';
import { partitionTable } from '../support/partition-table.js';

const MIB = 1024 * 1024;
let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'metalflow-node-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('the boot order', () => {
  const network = { kind: 'network' } as const;
  const any = { kind: 'disk', serial: null } as const;
  const a = { kind: 'disk', serial: 'A' } as const;
  test.each([
    ['the factory order', [network, any], 'disk', {}, [network, any]],
    ['a disk set first', [a, network, any], 'disk', {}, [a, network, any]],
    ['a disk set first, one boot from the network', [a, network, any], 'network', {}, [network, a, any]],
    ['a firmware that ignores orders', [network, a], 'network', { bootsDiskAlways: true }, [any, network]],
  ] as const)('of %s', (_, order, oneTime, behaviours, expected) => {
    expect(bootDevices(order, oneTime, behaviours)).toEqual(expected);
  });
});

describe('the firmware variables', () => {
  const open = (onReset = (): void => undefined): ReturnType<typeof openNvram> => openNvram({ path: join(dir, 'nvram.json'), onReset });

  test('keep the disk that was set first', () => {
    open().bootDiskFirst('A');
    open().bootDiskFirst('B');
    open().bootDiskFirst('A');
    expect(open().bootOrder()).toEqual([{ kind: 'disk', serial: 'A' }, { kind: 'disk', serial: 'B' }, ...FACTORY_BOOT_ORDER]);
  });
  test.each(['', '{', '[]', '{"version":2,"bootOrder":[]}', '{"version":1,"bootOrder":[{"kind":"floppy"}]}'])('start from the factory order when they read %j', (text) => {
    writeFileSync(join(dir, 'nvram.json'), text);
    const onReset = jest.fn();
    expect(open(onReset).bootOrder()).toEqual(FACTORY_BOOT_ORDER);
    expect(onReset).toHaveBeenCalledTimes(1);
  });
});

describe('the attestation key', () => {
  test('is made once, and signs in 64 bytes that its public half verifies', () => {
    const path = join(dir, 'ak.pem');
    const first = openAttestationKey(path);
    const again = openAttestationKey(path);
    expect(again.publicKey).toEqual(first.publicKey);
    const signature = again.sign(Buffer.from('report'));
    expect(signature).toHaveLength(64);
    expect(verify('sha256', Buffer.from('report'), { key: createPublicKey({ key: first.publicKey, format: 'der', type: 'spki' }), dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    expect(statSync(path).mode & 0o077).toBe(0);
  });
  test('is never replaced when it is damaged', () => {
    writeFileSync(join(dir, 'ak.pem'), 'damaged');
    expect(() => openAttestationKey(join(dir, 'ak.pem'))).toThrow();
    expect(readFileSync(join(dir, 'ak.pem'), 'utf8')).toBe('damaged');
  });
});

describe('the journal', () => {
  test('survives a line that a kill cut short', () => {
    const path = join(dir, 'journal.jsonl');
    const now = (): Date => new Date('2026-11-04T10:00:00Z');
    const first = openJournal({ path, now });
    first.write('one', { n: 1 });
    first.close();
    appendFileSync(path, '{"at":"2026-11-04T10:00:01Z","eve');
    const second = openJournal({ path, now });
    second.write('two');
    expect(second.read()).toEqual([{ at: '2026-11-04T10:00:00.000Z', event: 'one', n: 1 }, { at: '2026-11-04T10:00:00.000Z', event: 'two' }]);
    second.close();
    second.write('three');
    expect(second.read()).toHaveLength(2);
  });
});

describe('the disks', () => {
  const spec = { name: 'vda', serial: 'S1', model: 'simulated', sizeBytes: 4 * MIB, bus: 'virtio' };
  test('are sparse files that keep what they hold', () => {
    const [disk] = openDiskFiles({ folder: dir, disks: [spec] });
    expect(statSync(disk!.path)).toMatchObject({ size: 4 * MIB, blocks: 0 });
    writeFileSync(disk!.path, 'x', { flag: 'r+' });
    expect(readFileSync(openDiskFiles({ folder: dir, disks: [spec] })[0]!.path)[0]).toBe(0x78);
  });
  test.each([
    ['a serial that climbs out of the folder', [{ ...spec, serial: '../S1' }]],
    ['two disks of one serial', [spec, { ...spec, name: 'vdb' }]],
    ['two disks of one name', [spec, { ...spec, serial: 'S2' }]],
    ['half a sector', [{ ...spec, sizeBytes: 4 * MIB + 1 }]],
    ['no size', [{ ...spec, sizeBytes: 0 }]],
  ])('are refused with %s', (_, disks) => {
    expect(() => openDiskFiles({ folder: dir, disks })).toThrow(expect.objectContaining({ code: 'setting_invalid' }) as Error);
  });
  test('are refused when the file has another size', () => {
    const [disk] = openDiskFiles({ folder: dir, disks: [spec] });
    truncateSync(disk!.path, MIB);
    expect(() => openDiskFiles({ folder: dir, disks: [spec] })).toThrow(/has 1048576 bytes/);
  });

  const withBytes = (change: (table: Buffer) => void): Buffer => {
    const table = partitionTable();
    change(table);
    return table;
  };
  test.each([
    ['with an EFI system partition', partitionTable(), 'partitioned', ''],
    ['that is empty', Buffer.alloc(0), 'not-bootable', /no partition table/],
    ['with partitions of other types only', withBytes((t) => t.fill(0xaa, 1024, 1040)), 'not-bootable', /no EFI system partition/],
    ['with a table at the end of the world', withBytes((t) => t.writeBigUInt64LE(2n ** 60n, 512 + 72)), 'not-bootable', /damaged/],
    ['with four billion entries', withBytes((t) => t.writeUInt32LE(0xffffffff, 512 + 80)), 'not-bootable', /damaged/],
    ['with entries of no size', withBytes((t) => t.writeUInt32LE(0, 512 + 84)), 'not-bootable', /damaged/],
  ] as const)('%s: firmware finds it %3$s', async (_, bytes, kind, why) => {
    const [disk] = openDiskFiles({ folder: dir, disks: [spec] });
    writeFileSync(disk!.path, bytes, { flag: 'r+' });
    const look = await lookAtDisk(disk!.path);
    expect(look.kind).toBe(kind);
    expect(look.kind === 'not-bootable' ? look.why : '').toMatch(why);
  });
  test('that are gone are not bootable', async () => {
    expect(await lookAtDisk(join(dir, 'gone'))).toEqual({ kind: 'not-bootable', why: 'it cannot be read (ENOENT)' });
  });
});

describe('the command line of the netboot system', () => {
  const boot = { bootMac: '02:01:48:aa:bb:0c', macs: ['02:01:48:aa:bb:0c', '02:01:48:aa:bb:0d'], agentApi: undefined };
  test('is read as Linux reads it', () => {
    expect([...parseCommandLine('  quiet a=1 b=x=y a=2 ')]).toEqual([['quiet', ''], ['a', '2'], ['b', 'x=y']]);
  });
  test.each([
    ['metalflow_url=http://agent:42114 hw_addr=02:01:48:aa:bb:0d', { kind: 'agent', api: 'http://agent:42114', bootMac: '02:01:48:aa:bb:0d' }],
    ['metalflow_url=http://agent:42114 hw_addr=06:00:00:00:00:01', { kind: 'agent', api: 'http://agent:42114', bootMac: '02:01:48:aa:bb:0c' }],
    ['metalflow_url=http://agent:42114', { kind: 'agent', api: 'http://agent:42114', bootMac: '02:01:48:aa:bb:0c' }],
    ['', { kind: 'stuck', why: 'the kernel was told no metalflow_url' }],
    ['metalflow_url=gopher://agent', { kind: 'stuck', why: 'metalflow_url is no http URL' }],
  ])('%j', (commandLine, expected) => {
    expect(startNetbootSystem({ ...boot, commandLine })).toEqual(expected);
  });
});

describe('the seed on a disk', () => {
  const fleet = { version: 1, systemUuid: '0e4c1a52-0000-4000-8000-000000000001', seedUrl: 'http://agent/v1/seed/x', seenUrl: 'http://agent/v1/seen/x', installCode: 'c0de', nodeName: 'n1', instanceId: 'x-1' };
  const noFile: ReadDiskFile = async () => null;

  test('is the fleet seed where there is one', async () => {
    const read: ReadDiskFile = async (_, place, path) => (place === 'efi' && path === 'fleet-seed.json' ? Buffer.from(JSON.stringify(fleet)) : null);
    expect(await findSeed('disk', read)).toMatchObject({ kind: 'fleet', seed: fleet });
  });
  test.each(['', '{', 'null', '[]', '{"version":1}', JSON.stringify({ ...fleet, installCode: 7 }), '{"__proto__":{"version":1}}', '['.repeat(100)])('is unreadable when fleet-seed.json reads %j', (text) => {
    expect(readFleetSeed(Buffer.from(text)).kind).toBe('unreadable');
  });
  test('is none on a disk without one', async () => {
    expect(await findSeed('disk', noFile)).toEqual({ kind: 'none' });
  });
  test('is unreadable when the file system is', async () => {
    const broken: ReadDiskFile = () => Promise.reject(new Error('bad superblock'));
    expect(await findSeed('disk', broken)).toEqual({ kind: 'unreadable', why: 'bad superblock' });
  });
  test('of cloud-init asks to phone home as cloud-init does', () => {
    const seed = readNocloudSeed({
      metaData: Buffer.from('instance-id: "x-1"\nlocal-hostname: n1\n'),
      userData: Buffer.from('#cloud-config\n'),
      vendorData: Buffer.from('#cloud-config\nphone_home:\n  url: http://agent/v1/seen/$INSTANCE_ID\n  post: all\n'),
    });
    expect(seed).toMatchObject({ kind: 'nocloud', instanceId: 'x-1', phoneHome: { url: 'http://agent/v1/seen/x-1', form: 'instance_id=x-1&hostname=n1&fqdn=n1' } });
  });
  test.each([
    ['without an instance id', 'local-hostname: n1\n', null],
    ['whose instance id YAML reads as a number (M3)', 'instance-id: 0123\n', null],
    ['that is no YAML', '\t{', null],
    ['whose vendor-data is no mapping', 'instance-id: x\n', '- a\n'],
    ['whose vendor-data goes round in circles', 'instance-id: x\n', 'phone_home: &a\n  url: *a\n'],
  ])('of cloud-init is unreadable %s', (_, metaData, vendorData) => {
    expect(readNocloudSeed({ metaData: Buffer.from(metaData), userData: null, vendorData: vendorData === null ? null : Buffer.from(vendorData) }).kind).toBe('unreadable');
  });
});
