/** Which machine is behind a BMC, against the device that is meant. */
import type { BmcLooks } from '../contracts/bmc.js';
import type { MachineSeen } from '../contracts/power-by-hand.js';
import { parseUuid } from '../domain/uuid.js';

/** @param expected system_uuid of the device; null where it says none, or where there is no device */
export async function machineBehind(bmc: BmcLooks, expected: string | null): Promise<MachineSeen> {
  const reading = await bmc.machineUuid();
  if (reading.kind !== 'read') return { kind: 'unread', code: reading.kind === 'unknown' ? reading.code : null, why: reading.why };
  const uuid = parseUuid(reading.uuid);
  if (uuid === null) return { kind: 'unread', code: null, why: `${reading.uuid.slice(0, 64)} is no machine UUID` };
  if (expected === null) return { kind: 'not-declared', uuid };
  return uuid === expected ? { kind: 'same', uuid } : { kind: 'differs', uuid, expected };
}
