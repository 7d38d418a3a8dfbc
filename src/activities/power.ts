/** What a run asks of a BMC. A command never claims an effect; unreachable is never off. */
import { MetalflowError, type Failure } from '../domain/errors.js';
import { powerWord, readsOff, readsOn, type PowerWord } from '../domain/power.js';
import type { BmcFactory } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import type { Caller, Clock } from '../power/caller.js';
import { createPowerChanger } from '../power/change-power.js';
import { refusal } from '../power/failures.js';
import { bmcName, createBmcLeases } from '../power/lease.js';
import { compareMachine, saysWhichMachine, untilItAnswers, type MachineCheck } from '../power/machine-check.js';
import { createPowerReader } from '../power/reader.js';
import { createChangePower } from './change-power.js';
import { createConfirmOff, type MachineQuestion } from './confirm-off.js';
import { activityCaller, activityClock, cancellationSignal, fenceRef, heartbeat, type RunRef } from './context.js';

export type { PowerChange } from './change-power.js';
export type { MachineQuestion, OffConfirmation, OffQuestion } from './confirm-off.js';
export type { PowerChangeResult } from '../power/change-power.js';
export type { MachineCheck } from '../power/machine-check.js';

export interface PowerActivitiesDeps {
  readonly bmc: BmcFactory;
  readonly stores: Pick<Stores, 'fence' | 'power' | 'devices'>;
  readonly lockSeconds: number;
  readonly clock?: Clock;
  readonly caller?: Caller;
  readonly crash?: CrashPoint;
}

export function createPowerActivities({ bmc: factory, stores, lockSeconds, clock = activityClock, caller = activityCaller, crash = noCrash }: PowerActivitiesDeps) {
  const leases = createBmcLeases({ bmc: factory, power: stores.power, lockSeconds, clock, caller });
  const reader = createPowerReader({ stores, clock });

  return {
    /** Brings the power to on or off and says what was seen. */
    changePower: createChangePower({ leases, change: createPowerChanger({ reader, clock, caller, crash }), stores }),

    /** Two reads of off, or why not. */
    confirmOff: createConfirmOff({ leases, reader, stores, clock, caller, crash }),

    /** Arms one boot from the network; sends no power command. */
    async bootOnceFromNetwork(input: RunRef & { bmc: BmcAddress; limitSeconds: number }): Promise<{ kind: 'armed' } | { kind: 'refused'; failure: Failure }> {
      await stores.fence.enter(fenceRef(input));
      return leases.withBmc(input.bmc, async (bmc) => {
        // The wait for the lease may have been long: whoever took the fence over meanwhile must find no boot that a stale try armed.
        await stores.fence.enter(fenceRef(input));
        cancellationSignal().throwIfAborted();
        const answer = await bmc.bootOnceFromNetwork();
        crash('bootOnceFromNetwork:after-effect');
        if (answer.kind === 'accepted') return { kind: 'armed' };
        if (answer.kind === 'refused') return { kind: 'refused', failure: refusal(answer, 'one-time network boot', input.bmc) };
        // Arming twice is the same as once: try again.
        throw new MetalflowError('bmc_unreachable', { address: bmcName(input.bmc), seconds: input.limitSeconds });
      });
    },

    /** Is the machine behind the BMC the device? Before a run's first command. */
    async checkMachine(input: MachineQuestion): Promise<MachineCheck> {
      await stores.fence.enter(fenceRef(input));
      if (input.bmc.type === 'manual') return { kind: 'same', uuid: null };
      return untilItAnswers({ ...input, clock, caller }, () => leases.withBmc(input.bmc, (bmc) => compareMachine(bmc, input, stores.devices)), saysWhichMachine);
    },

    /** Waits, without a limit of its own, until the BMC reads as wanted: a held run goes on by itself when a person powered the node. */
    async waitForPower(input: RunRef & { bmc: BmcAddress; wanted: 'on' | 'off'; everySeconds: number; settlingSeconds: number }): Promise<PowerWord> {
      await stores.fence.enter(fenceRef(input));
      const reached = input.wanted === 'off' ? readsOff : readsOn;
      for (;;) {
        const reading = await leases.withBmc(input.bmc, (bmc) => reader.observe(bmc, input.deviceId, input.settlingSeconds));
        heartbeat({ waitsFor: input.wanted, reads: powerWord(reading) });
        if (reached(reading)) return powerWord(reading);
        cancellationSignal().throwIfAborted();
        await clock.pause(input.everySeconds * 1000);
      }
    },
  };
}

export type PowerActivities = ReturnType<typeof createPowerActivities>;
