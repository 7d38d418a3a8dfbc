/** From the disk an order names to the disk that is there: exactly one, or nothing is touched. */
import { MetalflowError } from '../domain/errors.js';
import type { DiskRef } from '../contracts/order.js';
import type { AgentDisk, AgentMachine, DiskHandle } from '../contracts/agent-machine.js';

/** Buses whose disks other machines may see as well; destroying one destroys their data (incident 5 elsewhere). */
const SHARED_BUSES = new Set(['fc', 'fcoe', 'iscsi', 'nvme-fabrics', 'nbd', 'rbd', 'srp', 'drbd']);

const describe = (disks: readonly AgentDisk[]): string => disks.map((disk) => `${disk.serial || disk.wwn || 'no serial'} (${disk.model}, ${disk.sizeBytes} bytes)`).join(', ') || 'none';

/**
 * The one disk with the reference's serial, and its WWN when the reference has one.
 * @throws disk_none_matches, disk_several_match
 */
export async function findDisk(machine: AgentMachine, ref: DiskRef): Promise<AgentDisk> {
  const disks = await machine.disks();
  const named = ref.serial !== '' || ref.wwn !== undefined;
  const matching = disks.filter((disk) => named && disk.serial === ref.serial && (ref.wwn === undefined || disk.wwn === ref.wwn));
  const rule = `serial ${ref.serial || '(none)'}${ref.wwn ? `, WWN ${ref.wwn}` : ''}`;
  if (matching.length > 1) throw new MetalflowError('disk_several_match', { count: matching.length, rule, disks: describe(matching) });
  const [disk] = matching;
  if (!disk) throw new MetalflowError('disk_none_matches', { rule, disks: describe(disks) });
  return disk;
}

/** As findDisk, for an action that destroys. @throws disk_shared as well */
export async function findDiskToDestroy(machine: AgentMachine, ref: DiskRef): Promise<AgentDisk> {
  const disk = await findDisk(machine, ref);
  if (SHARED_BUSES.has(disk.bus.toLowerCase())) throw new MetalflowError('disk_shared', { serial: disk.serial, why: `its bus is ${disk.bus}` });
  return disk;
}

/** Opens, uses and closes the disk, whatever happens. */
export async function withDisk<T>(disk: AgentDisk, use: (handle: DiskHandle) => Promise<T>): Promise<T> {
  const handle = await disk.open();
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}
