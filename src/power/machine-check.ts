/** Is the machine behind the BMC the device? Asked before a run's first command, and with each read that ends a retirement. */
import { failure, type Failure } from '../domain/errors.js';
import { wasNotAsked } from '../domain/power.js';
import { parseUuid } from '../domain/uuid.js';
import type { Stores } from '../contracts/store.js';
import type { Caller, Clock } from './caller.js';
import type { BmcAddress } from '../contracts/device.js';
import { unreadable } from './failures.js';
import { bmcName, type LeasedBmc } from './lease.js';

export type MachineCheck =
  | { readonly kind: 'same'; readonly uuid: string | null }
  | { readonly kind: 'differs'; readonly found: string; readonly failure: Failure }
  | { readonly kind: 'unknown'; readonly failure: Failure; readonly notAsked?: true };

/** Which machine is behind this BMC? */
export interface MachineExpected {
  readonly deviceId: string;
  readonly systemUuid: string | null;
  /** For which it is asked. */
  readonly limitSeconds: number;
}

/** What an approval says: this UUID; or, of a machine that says none, that it is the one behind this BMC and behind no other. */
export const approvalOf = (found: string, bmc: BmcAddress): string => found || `unreadable at ${bmcName(bmc)}`;

export async function compareMachine(bmc: LeasedBmc, input: MachineExpected, devices: Pick<Stores['devices'], 'find'>): Promise<MachineCheck> {
  const reading = await bmc.machineUuid();
  if (reading.kind === 'unknown') {
    const failure = unreadable(reading, 'reading the machine UUID', bmc.address, input.limitSeconds);
    return { kind: 'unknown', failure, ...(wasNotAsked(reading) && { notAsked: true as const }) };
  }
  const found = reading.kind === 'read' ? parseUuid(reading.uuid) : null;
  if (found && found === input.systemUuid) return { kind: 'same', uuid: found };
  const approved = (await devices.find(input.deviceId))?.approvedUuid;
  if (approved != null && approved === approvalOf(found ?? '', bmc.address)) return { kind: 'same', uuid: found };
  if (found && input.systemUuid) return { kind: 'differs', found, failure: failure('bmc_is_another_machine', { found, expected: input.systemUuid }) };
  return { kind: 'differs', found: found ?? '', failure: failure('bmc_uuid_unreadable') };
}

export const saysWhichMachine = (check: MachineCheck): boolean => check.kind !== 'unknown' || check.failure.code !== 'bmc_unreachable';

export interface Patience {
  readonly limitSeconds: number;
  readonly pollSeconds: number;
  readonly clock: Clock;
  readonly caller: Pick<Caller, 'tell'>;
}

/** A BMC that does not answer is asked again, each time through a fresh connection, until it does or the limit passes. */
export async function untilItAnswers<Seen>({ limitSeconds, pollSeconds, clock, caller }: Patience, look: () => Promise<Seen>, answered: (seen: Seen) => boolean): Promise<Seen> {
  const until = clock.now() + limitSeconds * 1000;
  for (;;) {
    const seen = await look();
    if (answered(seen) || clock.now() >= until) return seen;
    caller.tell({ waitsFor: 'the BMC to answer' });
    await clock.pause(pollSeconds * 1000);
  }
}
