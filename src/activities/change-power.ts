/**
 * Power to on or off: state read → intent written → commanded → observed. At most one command an intent, whatever dies or is
 * repeated meanwhile; a lost answer is followed by reads, never by a second command; off and on, never cycle.
 */
import { powerWord, readsOff, readsOn, wasNotAsked, type PowerReading, type PowerWord } from '../domain/power.js';
import { failure, MetalflowError, type Failure } from '../domain/errors.js';
import type { CommandResult } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import type { CrashPoint } from '../telemetry/crash-point.js';
import { refusal, unreadable } from './bmc-failures.js';
import { bmcName, type BmcLeases, type LeasedBmc } from './bmc-lease.js';
import type { Clock } from './clock.js';
import { cancellationSignal, fenceRef, heartbeat, type RunRef } from './context.js';
import type { PowerReader } from './power-reader.js';

export interface PowerChange extends RunRef {
  readonly bmc: BmcAddress;
  readonly command: 'on' | 'off';
  /** One intent, one command at most; the workflow draws a new one for each request. */
  readonly intent: string;
  readonly limitSeconds: number;
  readonly settlingSeconds: number;
  readonly pollSeconds: number;
}

export type PowerChangeResult =
  | { readonly kind: 'reached'; readonly power: PowerWord; readonly commanded: boolean }
  /** The limit passed and the state is not there, or the command was not sent. `answer` null: an earlier try died without one. */
  | { readonly kind: 'not-reached'; readonly power: PowerWord; readonly answer: CommandResult['kind'] | null; readonly failure: Failure }
  | { readonly kind: 'refused'; readonly failure: Failure };

export interface ChangePowerDeps {
  readonly leases: BmcLeases;
  readonly reader: PowerReader;
  readonly stores: Pick<Stores, 'fence' | 'power'>;
  readonly clock: Clock;
  readonly crash: CrashPoint;
}

export function createChangePower({ leases, reader, stores, clock, crash }: ChangePowerDeps): (change: PowerChange) => Promise<PowerChangeResult> {
  return async (change) => {
    const ref = fenceRef(change);
    await stores.fence.enter(ref);
    return leases.withBmc(change.bmc, async (bmc) => {
      const reached = change.command === 'off' ? readsOff : readsOn;
      // What is there need not be asked for (A3); what cannot be read is not commanded blindly. A manual node has nothing to read.
      const before = await readable(bmc, change);
      if (reached(before)) return { kind: 'reached', power: powerWord(before), commanded: false };
      if (before.kind !== 'read' && change.bmc.type !== 'manual') return unreached(change, before, null);

      const answer = await commandOnce(bmc);
      if (answer?.kind === 'refused') return { kind: 'refused', failure: refusal(answer, `power ${change.command}`, change.bmc) };
      if (answer?.kind === 'not-sent') return notSent(change, before, answer.why);
      const after = await observeUntil(bmc, change, reached);
      return reached(after) ? { kind: 'reached', power: powerWord(after), commanded: true } : unreached(change, after, answer);
    });

    /** @returns what the BMC said to the command of this intent; null when the try that sent it, if it did, died before it knew */
    async function commandOnce(bmc: LeasedBmc): Promise<CommandResult | null> {
      // Who was cancelled, or given up by Temporal, begins nothing.
      cancellationSignal().throwIfAborted();
      const askedAt = clock.now();
      const intent = await stores.power.intend(ref, { id: change.intent, command: change.command }, bmc.lease);
      crash('changePower:intent-written');
      if (intent.kind === 'lease-lost') throw new MetalflowError('bmc_busy', { address: bmcName(change.bmc) });
      if (intent.kind === 'again') return intent.answer;
      const answer = await bmc.send(change.command, askedAt);
      crash('changePower:after-effect');
      await stores.power.answered(change.intent, answer);
      crash('changePower:answer-written');
      return answer;
    }
  };

  /** The machine is as it was read before, and the next request may come through. */
  async function notSent(change: PowerChange, before: PowerReading, why: string): Promise<PowerChangeResult> {
    await clock.pause(change.pollSeconds * 1000);
    return { kind: 'not-reached', power: powerWord(before), answer: 'not-sent', failure: failure('bmc_not_sent', { command: `power ${change.command}`, address: bmcName(change.bmc), why }) };
  }

  /** The first reading that says something, within the limit. */
  async function readable(bmc: LeasedBmc, change: PowerChange): Promise<PowerReading> {
    const until = clock.now() + change.limitSeconds * 1000;
    for (;;) {
      const reading = await reader.observe(bmc, change.deviceId, change.settlingSeconds);
      if (reading.kind === 'read' || change.bmc.type === 'manual') return reading;
      // A BMC that refuses the credentials does so each time, and counts; a certificate that is not trusted stays so.
      if (reading.kind === 'unknown' && (reading.code === 'bmc_auth_failed' || reading.code === 'bmc_certificate_refused')) return reading;
      // Settling ends by itself, and only then does silence say something.
      if (reading.kind !== 'settling' && clock.now() >= until) return reading;
      heartbeat({ asked: change.command, reads: powerWord(reading) });
      await clock.pause(change.pollSeconds * 1000);
    }
  }

  /** Observes until the state is there or the limit passes; heartbeats what it sees. */
  async function observeUntil(bmc: LeasedBmc, change: PowerChange, reached: (reading: PowerReading) => boolean): Promise<PowerReading> {
    const until = clock.now() + change.limitSeconds * 1000;
    let settlingUntil = until + (change.bmc.type === 'amt' ? change.settlingSeconds * 1000 : 0);
    for (;;) {
      const reading = await reader.observe(bmc, change.deviceId, change.settlingSeconds);
      heartbeat({ asked: change.command, reads: powerWord(reading), ...(reading.kind !== 'read' && { why: reading.why }) });
      if (reached(reading)) return reading;
      // Settling has its own allowance; a real reading has not.
      if (reading.kind !== 'settling' && !wasNotAsked(reading)) settlingUntil = until;
      if (clock.now() >= settlingUntil) return reading;
      await clock.pause(change.pollSeconds * 1000);
    }
  }
}

function unreached(change: PowerChange, reading: PowerReading, answer: CommandResult | null): PowerChangeResult {
  const power = powerWord(reading);
  const shown = reading.kind === 'read' ? reading.power : power;
  const why = reading.kind === 'unknown'
    ? unreadable(reading, 'reading the power state', change.bmc, change.limitSeconds)
    : answer === null || answer.kind === 'unknown'
      ? failure('bmc_outcome_unknown', { command: change.command, power: shown })
      : failure(change.command === 'off' ? 'bmc_still_on' : 'bmc_still_off', { power: shown });
  return { kind: 'not-reached', power, answer: answer?.kind ?? null, failure: why };
}
