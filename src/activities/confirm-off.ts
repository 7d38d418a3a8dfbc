/** The end of a retirement: two reads of off, some seconds apart, through fresh connections, each from the right machine. */
import { failure, type Failure } from '../domain/errors.js';
import { powerWord, readsOff, type PowerReading, type PowerWord } from '../domain/power.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import type { CrashPoint } from '../telemetry/crash-point.js';
import type { Caller, Clock } from '../power/caller.js';
import { unreadable } from '../power/failures.js';
import { bmcName, type BmcLeases } from '../power/lease.js';
import { compareMachine, saysWhichMachine, untilItAnswers, type MachineCheck } from '../power/machine-check.js';
import type { PowerReader } from '../power/reader.js';
import { fenceRef, type RunRef } from './context.js';

export type OffConfirmation =
  | { readonly kind: 'off-twice' }
  | { readonly kind: 'not-off'; readonly power: PowerWord; readonly failure: Failure }
  /** What was read, off or not, says nothing of the device. */
  | { readonly kind: 'another-machine'; readonly found: string; readonly failure: Failure };

/** Which machine is behind this BMC? Asked for so long. */
export interface MachineQuestion extends RunRef {
  readonly bmc: BmcAddress;
  readonly systemUuid: string | null;
  readonly limitSeconds: number;
  readonly pollSeconds: number;
}

export interface OffQuestion extends MachineQuestion {
  readonly apartSeconds: number;
  readonly settlingSeconds: number;
}

export interface ConfirmOffDeps {
  readonly leases: BmcLeases;
  readonly reader: PowerReader;
  readonly stores: Pick<Stores, 'fence' | 'devices'>;
  readonly clock: Clock;
  readonly caller: Caller;
  readonly crash: CrashPoint;
}

interface Seen {
  readonly machine: MachineCheck;
  readonly power: PowerReading;
}

export function createConfirmOff({ leases, reader, stores, clock, caller, crash }: ConfirmOffDeps): (question: OffQuestion) => Promise<OffConfirmation> {
  return async (question) => {
    await stores.fence.enter(fenceRef(question));
    if (question.bmc.type === 'manual') return { kind: 'not-off', power: 'unknown', failure: failure('off_unprovable') };
    const first = await look(1, question);
    if (first) return first;
    crash('confirmOff:between-reads');
    await clock.pause(question.apartSeconds * 1000);
    return (await look(2, question)) ?? { kind: 'off-twice' };
  };

  /** @returns what keeps this read from saying that the device is off; null when it says so */
  async function look(read: 1 | 2, question: OffQuestion): Promise<OffConfirmation | null> {
    const { machine, power } = await untilItAnswers({ ...question, clock, caller }, () => fresh(question), saysEnough);
    caller.tell({ read, reads: powerWord(power) });
    if (machine.kind === 'differs') return { ...machine, kind: 'another-machine' };
    if (machine.kind === 'unknown') return { kind: 'not-off', power: powerWord(power), failure: machine.failure };
    return readsOff(power) ? null : { kind: 'not-off', power: powerWord(power), failure: whyNotOff(power, question) };
  }

  function fresh(question: OffQuestion): Promise<Seen> {
    return leases.withBmc(question.bmc, async (bmc) => ({ machine: await compareMachine(bmc, question, stores.devices), power: await reader.observe(bmc, question.deviceId, question.settlingSeconds) }));
  }
}

const saysEnough = ({ machine, power }: Seen): boolean => (power.kind === 'read' || (power.kind === 'unknown' && power.code !== 'bmc_unreachable')) && saysWhichMachine(machine);

function whyNotOff(power: PowerReading, { bmc, limitSeconds }: OffQuestion): Failure {
  switch (power.kind) {
    case 'read': return failure('bmc_still_on', { power: power.power });
    case 'settling': return failure('bmc_unreachable', { address: bmcName(bmc), seconds: limitSeconds });
    case 'unknown': return unreadable(power, 'reading the power state', bmc, limitSeconds);
  }
}
