/**
 * The machine the agent runs on, when that is a real Linux node.
 *
 * Not run on hardware: efibootmgr, blkdiscard, tcpdump, reboot and O_EXCL of a block device. Tried: the inventory against recorded
 * sysfs trees, the frame parser, the journal.
 *
 * The AK is a key in memory, new at each boot, so its attestation stays `unproven`. A key in the node's TPM is the next step:
 * `key` and `endorsementKey` are the seam for it.
 */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MetalflowError } from '../domain/errors.js';
import { parseMac } from '../domain/mac.js';
import { parseUuid } from '../domain/uuid.js';
import { fileJournal } from './journal.js';
import { captureLldp } from './lldp-capture.js';
import { readLocalDisks } from './local-disks.js';
import { runProgram } from './local-programs.js';
import type { AgentDisk, AgentMachine, EndorsementKey } from '../contracts/agent-machine.js';
import { findEfiPartition } from './partitions.js';
import { withDisk } from './pinned-disk.js';

const BOOT_LABEL = 'metalflow';
/** Where firmware looks on a disk it knows nothing about (UEFI 2.10 §3.5.1.1). */
const LOADER = process.arch === 'arm64' ? '\\EFI\\BOOT\\BOOTAA64.EFI' : '\\EFI\\BOOT\\BOOTX64.EFI';

export interface LocalMachineDeps {
  /** As the command line has it; null when it names none. */
  readonly bootMac: string | null;
  /** In RAM, so that it ends with the boot. */
  readonly journalPath?: string;
  readonly sys?: string;
  readonly dev?: string;
  readonly key?: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly endorsementKey?: EndorsementKey;
}

interface Nic {
  readonly name: string;
  readonly mac: string;
  readonly up: boolean;
}

async function readNics(sys: string): Promise<Nic[]> {
  const names = await readdir(join(sys, 'class/net'));
  const read = (name: string, file: string): Promise<string> => readFile(join(sys, 'class/net', name, file), 'utf8').then((text) => text.trim(), () => '');
  const nics = await Promise.all(names.filter((name) => name !== 'lo').map(async (name) => ({ name, mac: parseMac(await read(name, 'address')), up: (await read(name, 'operstate')) === 'up' })));
  return nics.filter((nic): nic is Nic => nic.mac !== null);
}

/** The NIC of the boot; without a word on the command line the only one that is up. @throws setting_invalid */
async function bootNic(sys: string, bootMac: string | null): Promise<Nic> {
  const nics = await readNics(sys);
  const fitting = nics.filter((nic) => (bootMac ? nic.mac === bootMac : nic.up));
  if (fitting.length === 1) return fitting[0]!;
  throw new MetalflowError('setting_invalid', { name: 'hw_addr', why: `${fitting.length} of the NICs fit (${nics.map(({ name, mac }) => `${name} ${mac}`).join(', ') || 'there are none'})` });
}

/** Puts an entry for the disk first in the boot order; older ones of ours are taken away, or each install would leave one. */
async function bootDiskByFirmware(disk: AgentDisk, { sys, dev }: { sys: string; dev: string }): Promise<string> {
  if (!existsSync(join(sys, 'firmware/efi'))) return 'booted by BIOS: the boot order is left as it is';
  const { number } = await withDisk(disk, findEfiPartition);
  const entries = (await runProgram('efibootmgr', [])).toString('utf8');
  for (const match of entries.matchAll(/^Boot([0-9A-F]{4})\*? metalflow\b/gm)) await runProgram('efibootmgr', ['-q', '-B', '-b', match[1]!]);
  await runProgram('efibootmgr', ['-q', '-c', '-d', join(dev, disk.name), '-p', String(number), '-L', BOOT_LABEL, '-l', LOADER]);
  return `a boot entry for partition ${number} is first in the boot order`;
}

/** @throws setting_invalid when UUID or boot NIC cannot be told */
export async function createLocalMachine(deps: LocalMachineDeps): Promise<AgentMachine> {
  const { sys = '/sys', dev = '/dev', journalPath = '/run/metalflow/agent-journal.ndjson' } = deps;
  const systemUuid = parseUuid(await readFile(join(sys, 'class/dmi/id/product_uuid'), 'utf8').catch(() => ''));
  if (!systemUuid) throw new MetalflowError('setting_invalid', { name: 'product_uuid', why: 'the firmware gives no system UUID' });
  const nic = await bootNic(sys, deps.bootMac);
  const { publicKey, privateKey } = deps.key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
  let neighbour: Buffer | null = null;
  return {
    systemUuid,
    bootMac: nic.mac,
    akPublic: publicKey.export({ format: 'der', type: 'spki' }),
    ...(deps.endorsementKey && { endorsementKey: deps.endorsementKey }),
    sign: async (bytes) => sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
    // Heard once is enough: a cable does not move while the node runs, and each listening costs half a minute.
    lldpFrame: async () => (neighbour ??= await captureLldp(nic.name)),
    disks: () => readLocalDisks({ sys, dev }),
    setNextBoot: (disk) => bootDiskByFirmware(disk, { sys, dev }),
    async reboot() {
      await runProgram('sync', [], { limitMs: 30_000 }).catch(() => undefined);
      // The netboot system may have no init that would listen; the kernel always does.
      await runProgram('reboot', ['-f'], { limitMs: 30_000 }).catch(() => writeFile('/proc/sysrq-trigger', 'b'));
    },
    ...fileJournal(journalPath),
  };
}
