/** `metalflow bmc status`: what one BMC says of itself and its machine. */
import type { BmcLooks } from '../contracts/bmc.js';
import type { BmcStatus } from '../contracts/power-by-hand.js';
import { powerWord } from '../domain/power.js';
import { machineBehind } from './machine-seen.js';

/** @param expected system_uuid of the device; null where it says none, or where there is no device */
export async function statusOf(bmc: BmcLooks, expected: string | null): Promise<Omit<BmcStatus, 'device' | 'bmc'>> {
  const reading = await bmc.observePower();
  return {
    power: powerWord(reading),
    why: reading.kind === 'read' ? null : reading.why,
    machine: await machineBehind(bmc, expected),
    identity: reading.kind === 'unknown' ? null : await bmc.identify(),
  };
}
