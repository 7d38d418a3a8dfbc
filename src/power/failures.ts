/** What a BMC did, in the words of the error table. */
import { failure, type Failure } from '../domain/errors.js';
import type { PowerReading } from '../domain/power.js';
import type { CommandResult, UuidReading } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import { bmcName } from './lease.js';

const secretOf = (address: BmcAddress): string => `bmc-${address.type}`;

/** @param seconds for which it was asked */
export function unreadable(reading: Extract<PowerReading | UuidReading, { kind: 'unknown' }>, step: string, address: BmcAddress, seconds: number): Failure {
  if (reading.code === 'bmc_unreachable') return failure(reading.code, { address: bmcName(address), seconds });
  return failure(reading.code, { address: bmcName(address), secret: secretOf(address), step, value: reading.why, meaning: reading.why, why: reading.why });
}

export const refusal = (result: Extract<CommandResult, { kind: 'refused' }>, step: string, address: BmcAddress): Failure =>
  failure(result.code, {
    step, value: result.details?.['value'] ?? '?', meaning: result.why, task: result.details?.['task'] ?? result.why,
    address: bmcName(address), secret: secretOf(address), why: result.why,
  });
