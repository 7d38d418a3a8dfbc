/**
 * Power, as the run needs it: intent written → state read → decided → commanded → observed. A command never claims an effect; an
 * attempt that finds an intent without an answer only observes; off and on, never cycle; unreachable is never off.
 */
import { powerWord, readsOff, readsOn, type PowerReading, type PowerWord } from '../domain/power.js';
import { failure, MetalflowError, type Failure } from '../domain/errors.js';
import { parseUuid } from '../domain/uuid.js';
import type { Bmc, BmcFactory, CommandResult } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { cancellationSignal, fenceRef, heartbeat, holderName, pause, type RunRef } from './context.js';

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
  /** The limit passed and the state is not there. `answer` null: an earlier try died without one. */
  | { readonly kind: 'not-reached'; readonly power: PowerWord; readonly answer: CommandResult['kind'] | null; readonly failure: Failure }
  | { readonly kind: 'refused'; readonly failure: Failure };

export type MachineCheck = { readonly kind: 'same'; readonly uuid: string | null } | { readonly kind: 'differs'; readonly found: string; readonly failure: Failure } | { readonly kind: 'unknown'; readonly failure: Failure };

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

export interface PowerActivitiesDeps {
  readonly bmc: BmcFactory;
  readonly stores: Pick<Stores, 'fence' | 'power' | 'devices'>;
  readonly lockSeconds: number;
  readonly crash?: CrashPoint;
}

const where = (address: BmcAddress): string => (address.port ? `${address.host}:${address.port}` : address.host || address.type);

export function createPowerActivities({ bmc: factory, stores, lockSeconds, crash = noCrash }: PowerActivitiesDeps) {
  /** One conversation with one BMC at a time, across all workers. */
  async function withBmc<R>(address: BmcAddress, work: (bmc: Bmc) => Promise<R>): Promise<R> {
    const key = where(address);
    const holder = holderName();
    while (!(await stores.power.lock(key, holder, lockSeconds))) {
      heartbeat({ waitingFor: `another command to the BMC ${key}` });
      await pause(250);
    }
    const renewal = setInterval(() => void stores.power.lock(key, holder, lockSeconds).catch(() => undefined), (lockSeconds * 1000) / 3);
    try {
      const bmc = await factory.open(address);
      try {
        return await work(bmc);
      } finally {
        await bmc.close();
      }
    } finally {
      clearInterval(renewal);
      await stores.power.unlock(key, holder);
    }
  }

  /** AMT shares the host's NIC: for a while after a power change its silence says nothing. */
  async function observe(bmc: Bmc, deviceId: string, settlingSeconds: number): Promise<PowerReading> {
    const reading = await bmc.observePower();
    const settled = await settling(reading, bmc.address, deviceId, settlingSeconds);
    await stores.devices.setPower(deviceId, powerWord(settled));
    return settled;
  }

  async function settling(reading: PowerReading, address: BmcAddress, deviceId: string, settlingSeconds: number): Promise<PowerReading> {
    if (address.type !== 'amt' || reading.kind !== 'unknown' || reading.code !== 'bmc_unreachable') return reading;
    const changed = await stores.power.lastChangeAt(deviceId);
    const age = changed ? (Date.now() - Date.parse(changed)) / 1000 : Infinity;
    return age < settlingSeconds ? { kind: 'settling', why: `${reading.why}; the power changed ${Math.round(age)} s ago` } : reading;
  }

  function unreached(change: PowerChange, reading: PowerReading, answer: CommandResult | null): PowerChangeResult {
    const power = powerWord(reading);
    const shown = reading.kind === 'read' ? reading.power : power;
    const address = where(change.bmc);
    const why = reading.kind === 'unknown'
      ? failure(reading.code, reading.code === 'bmc_unreachable' ? { address, seconds: change.limitSeconds } : { address, secret: `bmc-${change.bmc.type}`, step: 'reading the power state', value: reading.why, meaning: reading.why, why: reading.why })
      : answer === null || answer.kind === 'unknown'
        ? failure('bmc_outcome_unknown', { command: change.command, power: shown })
        : failure(change.command === 'off' ? 'bmc_still_on' : 'bmc_still_off', { power: shown });
    return { kind: 'not-reached', power, answer: answer?.kind ?? null, failure: why };
  }

  const send = (bmc: Bmc, command: 'on' | 'off'): Promise<CommandResult> => (command === 'on' ? bmc.powerOn() : bmc.powerOff());

  const refusal = (result: Extract<CommandResult, { kind: 'refused' }>, step: string, address: BmcAddress): Failure =>
    failure(result.code, { step, value: result.details?.['returnValue'] ?? '?', meaning: result.why, task: result.details?.['task'] ?? result.why, address: where(address), secret: `bmc-${address.type}`, why: result.why });

  /** Observes until the state is there or the limit passes; heartbeats what it sees. */
  async function observeUntil(bmc: Bmc, change: PowerChange, seconds: number): Promise<PowerReading> {
    const reached = change.command === 'off' ? readsOff : readsOn;
    const until = Date.now() + seconds * 1000;
    let settlingUntil = until + (change.bmc.type === 'amt' ? change.settlingSeconds * 1000 : 0);
    for (;;) {
      const reading = await observe(bmc, change.deviceId, change.settlingSeconds);
      heartbeat({ asked: change.command, reads: powerWord(reading), ...(reading.kind !== 'read' && { why: reading.why }) });
      if (reached(reading)) return reading;
      // Settling has its own allowance; a real reading has not.
      if (reading.kind !== 'settling') settlingUntil = until;
      if (Date.now() >= settlingUntil) return reading;
      await pause(change.pollSeconds * 1000);
    }
  }

  return {
    /** Brings the power to on or off and says what was seen. At most one command an intent. */
    async changePower(change: PowerChange): Promise<PowerChangeResult> {
      const ref = fenceRef(change);
      await stores.fence.enter(ref);
      return withBmc(change.bmc, async (bmc) => {
        const reached = change.command === 'off' ? readsOff : readsOn;
        let before = await observe(bmc, change.deviceId, change.settlingSeconds);
        // What is there need not be asked for (A3); what cannot be read is not commanded blindly. A manual node has nothing to read.
        if (reached(before)) return { kind: 'reached', power: powerWord(before), commanded: false };
        if (before.kind !== 'read' && change.bmc.type !== 'manual') {
          before = await observeReadable(bmc, change);
          if (reached(before)) return { kind: 'reached', power: powerWord(before), commanded: false };
          if (before.kind !== 'read') return unreached(change, before, null);
        }
        const intent = await stores.power.intend(ref, { id: change.intent, command: change.command });
        crash('changePower:intent-written');
        let answer: CommandResult | null = intent.kind === 'again' ? intent.answer : null;
        if (intent.kind === 'first') {
          answer = await send(bmc, change.command);
          crash('changePower:after-effect');
          await stores.power.answered(change.intent, answer);
          crash('changePower:answer-written');
        }
        if (answer?.kind === 'refused') return { kind: 'refused', failure: refusal(answer, `power ${change.command}`, change.bmc) };
        if (answer?.kind === 'not-sent') return unreached(change, { kind: 'unknown', code: 'bmc_unreachable', why: answer.why }, answer);
        const after = await observeUntil(bmc, change, change.limitSeconds);
        return reached(after) ? { kind: 'reached', power: powerWord(after), commanded: true } : unreached(change, after, answer);
      });

      async function observeReadable(bmc: Bmc, wanted: PowerChange): Promise<PowerReading> {
        const until = Date.now() + wanted.limitSeconds * 1000;
        for (;;) {
          const reading = await observe(bmc, wanted.deviceId, wanted.settlingSeconds);
          heartbeat({ asked: wanted.command, reads: powerWord(reading) });
          if (reading.kind === 'read' || (reading.kind === 'unknown' && reading.code === 'bmc_auth_failed')) return reading;
          // Settling ends by itself, and only then does silence say something.
          if (reading.kind !== 'settling' && Date.now() >= until) return reading;
          await pause(wanted.pollSeconds * 1000);
        }
      }
    },

    /** Arms one boot from the network; sends no power command. */
    async bootOnceFromNetwork(input: RunRef & { bmc: BmcAddress; limitSeconds: number }): Promise<{ kind: 'armed' } | { kind: 'refused'; failure: Failure }> {
      await stores.fence.enter(fenceRef(input));
      return withBmc(input.bmc, async (bmc) => {
        const answer = await bmc.bootOnceFromNetwork();
        crash('bootOnceFromNetwork:after-effect');
        if (answer.kind === 'accepted') return { kind: 'armed' };
        if (answer.kind === 'refused') return { kind: 'refused', failure: refusal(answer, 'one-time network boot', input.bmc) };
        // Arming twice is the same as once: try again.
        throw new MetalflowError('bmc_unreachable', { address: where(input.bmc), seconds: input.limitSeconds });
      });
    },

    /** Is the machine behind the BMC the device? Before a run's first command. */
    async checkMachine(input: MachineQuestion): Promise<MachineCheck> {
      await stores.fence.enter(fenceRef(input));
      if (input.bmc.type === 'manual') return { kind: 'same', uuid: null };
      return untilItAnswers(input, () => withBmc(input.bmc, (bmc) => compareMachine(bmc, input)), (check) => check.kind !== 'unknown' || check.failure.code !== 'bmc_unreachable');
    },

    /** Waits, without a limit of its own, until the BMC reads as wanted: a held run goes on by itself when a person powered the node. */
    async waitForPower(input: RunRef & { bmc: BmcAddress; wanted: 'on' | 'off'; everySeconds: number; settlingSeconds: number }): Promise<PowerWord> {
      await stores.fence.enter(fenceRef(input));
      const reached = input.wanted === 'off' ? readsOff : readsOn;
      for (;;) {
        const reading = await withBmc(input.bmc, (bmc) => observe(bmc, input.deviceId, input.settlingSeconds));
        heartbeat({ waitsFor: input.wanted, reads: powerWord(reading) });
        if (reached(reading)) return powerWord(reading);
        cancellationSignal().throwIfAborted();
        await pause(input.everySeconds * 1000);
      }
    },

    /** Two reads of off, some seconds apart, through fresh connections, each from the right machine. */
    async confirmOff(input: MachineQuestion & { apartSeconds: number; settlingSeconds: number }): Promise<OffConfirmation> {
      await stores.fence.enter(fenceRef(input));
      if (input.bmc.type === 'manual') return { kind: 'not-off', power: 'unknown', failure: failure('off_unprovable') };
      for (const read of [1, 2]) {
        const seen = await untilItAnswers(
          input,
          () => withBmc(input.bmc, async (bmc) => ({ machine: await compareMachine(bmc, input), power: await observe(bmc, input.deviceId, input.settlingSeconds) })),
          ({ machine, power }) => (power.kind === 'read' || (power.kind === 'unknown' && power.code !== 'bmc_unreachable')) && (machine.kind !== 'unknown' || machine.failure.code !== 'bmc_unreachable'),
        );
        heartbeat({ read, reads: powerWord(seen.power) });
        if (seen.machine.kind === 'differs') return { ...seen.machine, kind: 'another-machine' };
        if (seen.machine.kind === 'unknown') return { kind: 'not-off', power: powerWord(seen.power), failure: seen.machine.failure };
        if (!readsOff(seen.power)) {
          return { kind: 'not-off', power: powerWord(seen.power), failure: seen.power.kind === 'read' ? failure('bmc_still_on', { power: seen.power.power }) : failure('bmc_unreachable', { address: where(input.bmc), seconds: input.limitSeconds }) };
        }
        if (read === 2) break;
        crash('confirmOff:between-reads');
        await pause(input.apartSeconds * 1000);
      }
      return { kind: 'off-twice' };
    },
  };

  /** A BMC that does not answer is asked again, each time through a fresh connection, until it does or the limit passes. */
  async function untilItAnswers<Seen>({ limitSeconds, pollSeconds }: MachineQuestion, look: () => Promise<Seen>, answered: (seen: Seen) => boolean): Promise<Seen> {
    const until = Date.now() + limitSeconds * 1000;
    for (;;) {
      const seen = await look();
      if (answered(seen) || Date.now() >= until) return seen;
      heartbeat({ waitsFor: 'the BMC to answer' });
      await pause(pollSeconds * 1000);
    }
  }

  async function compareMachine(bmc: Bmc, input: MachineQuestion): Promise<MachineCheck> {
    const reading = await bmc.machineUuid();
    if (reading.kind === 'unknown') {
      return { kind: 'unknown', failure: failure(reading.code, { address: where(bmc.address), seconds: input.limitSeconds, secret: `bmc-${bmc.address.type}`, step: 'reading the machine UUID', value: '?', meaning: reading.why, why: reading.why }) };
    }
    const found = reading.kind === 'read' ? parseUuid(reading.uuid) : null;
    if (found && found === input.systemUuid) return { kind: 'same', uuid: found };
    const approved = (await stores.devices.find(input.deviceId))?.approvedUuid;
    if (approved != null && approved === (found ?? '')) return { kind: 'same', uuid: found };
    if (found && input.systemUuid) return { kind: 'differs', found, failure: failure('bmc_is_another_machine', { found, expected: input.systemUuid }) };
    return { kind: 'differs', found: found ?? '', failure: failure('bmc_uuid_unreadable') };
  }
}

export type PowerActivities = ReturnType<typeof createPowerActivities>;
