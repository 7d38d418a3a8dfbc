/** The disks of a Linux machine, read from sysfs: no lsblk and no udev is needed in the netboot system. */
import { constants } from 'node:fs';
import { open, readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { createDiskHandle } from './disk-handle.js';
import { runProgram } from './local-programs.js';
import type { AgentDisk } from '../contracts/agent-machine.js';

/** Block devices that are no disks of their own, or none that could be installed on. */
const NO_DISKS = /^(loop|ram|zram|dm-|md|sr|fd|nbd|rbd|drbd|mtdblock)/;
/** sysfs counts in these, whatever the drive's sectors are. */
const SYSFS_SECTOR = 512;
const BLKDISCARD_LIMIT_MS = 30 * 60_000;

const textOf = async (...path: string[]): Promise<string> => readFile(join(...path), 'utf8').then((text) => text.replaceAll('\0', '').trim(), () => '');

/** SCSI VPD page 0x80, Unit Serial Number (SPC-4 §7.8.16): length at byte 2, text from byte 4. */
async function vpdSerial(device: string): Promise<string> {
  const page = await readFile(join(device, 'vpd_pg80')).catch(() => null);
  return page && page.length > 4 && page[1] === 0x80 ? page.toString('latin1', 4, 4 + page.readUInt16BE(2)).replaceAll('\0', '').trim() : '';
}

/** `naa.5000c500a1b2c3d4` is what lsblk, labels and people write as `0x5000c500a1b2c3d4`. */
const wwnFrom = (wwid: string): string | undefined => (wwid.startsWith('naa.') ? `0x${wwid.slice(4)}` : /^(eui|nvme|uuid)\./.test(wwid) ? wwid : undefined);

/** What carries the disk, from the path of its device. The shared ones come first: a rport lies below a PCI device too. */
const BUSES: readonly (readonly [RegExp, string])[] = [
  [/\/rport-/, 'fc'],
  [/\/session\d+\//, 'iscsi'],
  [/\/nvme-fabrics\//, 'nvme-fabrics'],
  [/\/nvme\d*\//, 'nvme'],
  [/\/usb\d+\//, 'usb'],
  [/\/ata\d+\//, 'sata'],
  [/\/end_device-/, 'sas'],
  [/\/virtio\d+/, 'virtio'],
  [/\/mmc_host\//, 'mmc'],
];

async function inspect(sys: string, dev: string, name: string): Promise<AgentDisk | null> {
  const block = join(sys, 'block', name);
  const device = join(block, 'device');
  const sizeBytes = Number(await textOf(block, 'size')) * SYSFS_SECTOR;
  // An empty card reader has no size; a write-protected disk cannot be installed on.
  if (!(sizeBytes > 0) || (await textOf(block, 'ro')) === '1') return null;
  const serial = (await textOf(block, 'serial')) || (await textOf(device, 'serial')) || (await vpdSerial(device));
  const wwn = wwnFrom((await textOf(block, 'wwid')) || (await textOf(device, 'wwid')));
  const where = `${await realpath(device).catch(() => '')}/`;
  const path = join(dev, name);
  return {
    name, serial, sizeBytes,
    ...(wwn !== undefined && { wwn }),
    model: await textOf(device, 'model'),
    bus: BUSES.find(([pattern]) => pattern.test(where))?.[1] ?? 'scsi',
    open: async () => {
      // On a block device O_EXCL asks the kernel for it alone: EBUSY when something has it mounted, in an array or in a volume group.
      const handle = await open(path, constants.O_RDWR | constants.O_EXCL);
      const discard = (): Promise<boolean> => runProgram('blkdiscard', ['-f', path], { limitMs: BLKDISCARD_LIMIT_MS }).then(() => true, () => false);
      return createDiskHandle({ handle, serial, sizeBytes, discard });
    },
  };
}

/** `sys` and `dev` are folders: `/sys` and `/dev`, or those of a test. */
export async function readLocalDisks({ sys = '/sys', dev = '/dev' } = {}): Promise<AgentDisk[]> {
  const names = (await readdir(join(sys, 'block'))).filter((name) => !NO_DISKS.test(name)).sort();
  const disks = await Promise.all(names.map((name) => inspect(sys, dev, name)));
  return disks.filter((disk) => disk !== null);
}
