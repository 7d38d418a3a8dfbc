/**
 * Power to on or off: state read → intent written → commanded → observed. At most one command an intent, whatever dies or is
 * repeated meanwhile; a lost answer is followed by reads, never by a second command; off and on, never cycle.
 */
import { powerWord, readsOff, readsOn, wasNotAsked, type PowerReading, type PowerWord } from '../domain/power.js';
import { failure, MetalflowError, type Failure } from '../domain/errors.js';
import type { CommandResult } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { BmcLeaseTerms } from '../contracts/store.js';
import type { CrashPoint } from '../telemetry/crash-point.js';
import type { Caller, Clock } from './caller.js';
import { refusal, unreadable } from './failures.js';
import { bmcName, type LeasedBmc } from './lease.js';
import type { PowerReader } from './reader.js';

export interface PowerAim {
  readonly deviceId: string;
  readonly bmc: BmcAddress;
  readonly command: 'on' | 'off';
  readonly limitSeconds: number;
  readonly settlingSeconds: number;
  readonly pollSeconds: number;
}

export type PowerChangeResult =
  | { readonly kind: 'reached'; readonly power: PowerWord; readonly commanded: boolean }
  /** The limit passed and the state is not there, or the command was not sent. `answer` null: an earlier try died without one. */
  | { readonly kind: 'not-reached'; readonly power: PowerWord; readonly answer: CommandResult['kind'] | null; readonly failure: Failure }
  | { readonly kind: 'refused'; readonly failure: Failure };

/** Where the request is written before the wire: one intent, one command at most. */
export interface PowerIntent {
  /**
   * Writes it, and renews the lease under which its command goes out; both or neither.
   * @returns `again`: an earlier try wrote it; `answer` is what the BMC said, null when the try died before it knew
   * @throws when the caller may no longer; then nothing is sent
   */
  write(lease: BmcLeaseTerms | null): Promise<{ readonly kind: 'first' } | { readonly kind: 'again'; readonly answer: CommandResult | null } | { readonly kind: 'lease-lost' }>;
  answered(answer: CommandResult): Promise<void>;
}

export interface PowerChangerDeps {
  readonly reader: PowerReader;
  readonly clock: Clock;
  readonly caller: Caller;
  readonly crash: CrashPoint;
}

/** Brings the power to on or off, in one conversation, and says what was seen. */
export type PowerChanger = (bmc: LeasedBmc, aim: PowerAim, intent: PowerIntent) => Promise<PowerChangeResult>;

export function createPowerChanger({ reader, clock, caller, crash }: PowerChangerDeps): PowerChanger {
  return async (bmc, aim, intent) => {
    const reached = aim.command === 'off' ? readsOff : readsOn;
    // What is there need not be asked for (A3); what cannot be read is not commanded blindly. A manual node has nothing to read.
    const before = await readable(bmc, aim);
    if (reached(before)) return { kind: 'reached', power: powerWord(before), commanded: false };
    if (before.kind !== 'read' && aim.bmc.type !== 'manual') return unreached(aim, before, null);

    const answer = await commandOnce(bmc, aim, intent);
    if (answer?.kind === 'refused') return { kind: 'refused', failure: refusal(answer, `power ${aim.command}`, aim.bmc) };
    if (answer?.kind === 'not-sent') return notSent(aim, before, answer.why);
    const after = await observeUntil(bmc, aim, reached);
    return reached(after) ? { kind: 'reached', power: powerWord(after), commanded: true } : unreached(aim, after, answer);
  };

  /** @returns what the BMC said to the command of this intent; null when the try that sent it, if it did, died before it knew */
  async function commandOnce(bmc: LeasedBmc, { command, bmc: address }: PowerAim, intent: PowerIntent): Promise<CommandResult | null> {
    // Whom nobody waits for any more begins nothing.
    caller.cancelled().throwIfAborted();
    const askedAt = clock.now();
    const written = await intent.write(bmc.lease);
    crash('changePower:intent-written');
    if (written.kind === 'lease-lost') throw new MetalflowError('bmc_busy', { address: bmcName(address) });
    if (written.kind === 'again') return written.answer;
    const answer = await bmc.send(command, askedAt);
    crash('changePower:after-effect');
    await intent.answered(answer);
    crash('changePower:answer-written');
    if (answer.kind === 'unknown') caller.tell({ asked: command, unanswered: answer.why });
    return answer;
  }

  /** The machine is as it was read before, and the next request may come through. */
  async function notSent(aim: PowerAim, before: PowerReading, why: string): Promise<PowerChangeResult> {
    await clock.pause(aim.pollSeconds * 1000);
    return { kind: 'not-reached', power: powerWord(before), answer: 'not-sent', failure: failure('bmc_not_sent', { command: `power ${aim.command}`, address: bmcName(aim.bmc), why }) };
  }

  /** The first reading that says something, within the limit. */
  async function readable(bmc: LeasedBmc, aim: PowerAim): Promise<PowerReading> {
    const until = clock.now() + aim.limitSeconds * 1000;
    for (;;) {
      const reading = await reader.observe(bmc, aim.deviceId, aim.settlingSeconds);
      if (reading.kind === 'read' || aim.bmc.type === 'manual') return reading;
      // A BMC that refuses the credentials does so each time, and counts; a certificate that is not trusted stays so.
      if (reading.kind === 'unknown' && (reading.code === 'bmc_auth_failed' || reading.code === 'bmc_certificate_refused')) return reading;
      // Settling ends by itself, and only then does silence say something.
      if (reading.kind !== 'settling' && clock.now() >= until) return reading;
      caller.tell({ asked: aim.command, reads: powerWord(reading) });
      await clock.pause(aim.pollSeconds * 1000);
    }
  }

  /** Observes until the state is there or the limit passes; heartbeats what it sees. */
  async function observeUntil(bmc: LeasedBmc, aim: PowerAim, reached: (reading: PowerReading) => boolean): Promise<PowerReading> {
    const until = clock.now() + aim.limitSeconds * 1000;
    let settlingUntil = until + (aim.bmc.type === 'amt' ? aim.settlingSeconds * 1000 : 0);
    for (;;) {
      const reading = await reader.observe(bmc, aim.deviceId, aim.settlingSeconds);
      caller.tell({ asked: aim.command, reads: powerWord(reading), ...(reading.kind !== 'read' && { why: reading.why }) });
      if (reached(reading)) return reading;
      // Settling has its own allowance; a real reading has not.
      if (reading.kind !== 'settling' && !wasNotAsked(reading)) settlingUntil = until;
      if (clock.now() >= settlingUntil) return reading;
      await clock.pause(aim.pollSeconds * 1000);
    }
  }
}

function unreached(aim: PowerAim, reading: PowerReading, answer: CommandResult | null): PowerChangeResult {
  const power = powerWord(reading);
  const shown = reading.kind === 'read' ? reading.power : power;
  const why = reading.kind === 'unknown'
    ? unreadable(reading, 'reading the power state', aim.bmc, aim.limitSeconds)
    : answer === null || answer.kind === 'unknown'
      ? failure('bmc_outcome_unknown', { command: aim.command, power: shown })
      : failure(aim.command === 'off' ? 'bmc_still_on' : 'bmc_still_off', { power: shown });
  return { kind: 'not-reached', power, answer: answer?.kind ?? null, failure: why };
}
