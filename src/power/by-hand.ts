/**
 * Power by a person's hand, by the rules of the runs, and beside them: not while a run is open, unless the person insists and says why;
 * to the machine that is meant; each request in the journal before the wire, and what was seen after.
 */
import { randomUUID } from 'node:crypto';
import type { NetboxClient } from '../contracts/netbox.js';
import type { BmcAsk, BmcDone, HandOrder } from '../contracts/power-by-hand.js';
import type { HandIntents, Stores } from '../contracts/store.js';
import { isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import { powerWord } from '../domain/power.js';
import { noCrash } from '../telemetry/crash-point.js';
import type { Caller, Clock } from './caller.js';
import { createPowerChanger, type PowerIntent } from './change-power.js';
import { refusal } from './failures.js';
import { bmcName, type BmcLeases, type LeasedBmc } from './lease.js';
import { compareMachine } from './machine-check.js';
import { createPowerReader } from './reader.js';
import type { Found } from './target.js';

export type HandAsk = Extract<BmcAsk, HandOrder>;
type Step = 'on' | 'off' | 'network';

export interface HandLimits {
  /** Seconds until a state has to be there. */
  readonly powerSeconds: number;
  /** Seconds for which the silence of an AMT after a command says nothing, on top. */
  readonly settlingSeconds: number;
  readonly pollSeconds: number;
}

export interface HandDeps {
  readonly leases: BmcLeases;
  readonly stores: { readonly devices: Pick<Stores['devices'], 'find' | 'setPower' | 'journal'>; readonly power: Pick<Stores['power'], 'lock' | 'answered' | 'lastChangeAt'> & HandIntents };
  readonly netbox: Pick<NetboxClient, 'addJournalEntry'>;
  readonly limits: HandLimits;
  readonly clock: Clock;
  readonly caller: Caller;
  /** Who it is when the order does not say. */
  readonly user: string;
  /** Told to the person who waits. */
  readonly tell: (text: string) => void;
}

const NO_DEVICE = '';
const stepText = (step: Step): string => (step === 'network' ? 'one boot from the network' : `power ${step}`);
const stepsOf = (ask: HandAsk): Step[] => (ask.what !== 'pxe' ? [ask.what] : ask.reboot ? ['off', 'network', 'on'] : ['network']);

const thrown = ({ code, details }: Failure): MetalflowError => new MetalflowError(code, details);

/** Asked again by the store, in the same breath in which the intent is written. */
function refuseDuringRun({ subject: { device } }: Found, { duringRun, reason }: HandOrder): void {
  if (duringRun && !reason) throw new MetalflowError('reason_required', { verb: 'a command during a run' });
  if (device !== null && device.openRun !== null && !duringRun) throw new MetalflowError('bmc_run_open', { node: device.name, run: device.openRun });
}

/** @returns what carries out a person's order. @throws the failure that a run would hold with; bmc_busy, bmc_run_open, reason_required */
export function createHand({ leases, stores, netbox, limits, clock, caller, user, tell }: HandDeps): (found: Found, ask: HandAsk) => Promise<BmcDone> {
  const secondsSince = (began: number): number => Math.ceil((clock.now() - began) / 1000);

  return async (found, ask) => {
    refuseDuringRun(found, ask);
    const { device, address } = found;
    const by = ask.by ?? user;
    const why = `by ${by}'s hand (metalflow bmc ${ask.what})${ask.reason ? `: ${ask.reason}` : ''}`;
    // Of a bare address nothing is kept, but this conversation knows when it changed the power.
    let changedAt: string | null = null;
    const kept = device !== null ? stores : { devices: { setPower: async () => undefined }, power: { lastChangeAt: async () => changedAt } };
    const change = createPowerChanger({ reader: createPowerReader({ stores: kept, clock }), clock, caller, crash: noCrash });

    return leases.withBmc(address, async (bmc) => {
      await refuseUnlessRight(bmc);
      const commands: ('on' | 'off')[] = [];
      for (const step of stepsOf(ask)) {
        try {
          if (step === 'network') await arm(bmc);
          else if (await power(bmc, step)) commands.push(step);
          else continue;
          await record(`${stepText(step)} ${step === 'network' ? 'armed' : 'seen'} ${why}`);
        } catch (error) {
          await record(`${stepText(step)} ended with ${isMetalflowError(error) ? error.code : 'an error'}, ${why}`);
          throw error;
        }
      }
      const reads = powerWord(await bmc.observePower());
      if (device) await stores.devices.setPower(device.id, reads);
      return { ...found.subject, power: reads, commands, armed: ask.what === 'pxe' };
    });

    /** A command goes to the machine that is meant; of a bare address nobody said which that is. */
    async function refuseUnlessRight(bmc: LeasedBmc): Promise<void> {
      const began = clock.now();
      const machine = await compareMachine(bmc, { deviceId: device?.id ?? NO_DEVICE, systemUuid: device?.systemUuid ?? null, limitSeconds: limits.powerSeconds }, stores.devices);
      if (machine.kind === 'same' || (machine.kind === 'differs' && device === null)) return;
      if (machine.failure.code === 'bmc_unreachable') throw new MetalflowError('bmc_unreachable', { address: bmcName(address), seconds: secondsSince(began) });
      throw thrown(machine.failure);
    }

    /** @returns whether it was commanded; false when it was there already */
    async function power(bmc: LeasedBmc, command: 'on' | 'off'): Promise<boolean> {
      const aim = { deviceId: device?.id ?? NO_DEVICE, bmc: address, command, limitSeconds: limits.powerSeconds, settlingSeconds: limits.settlingSeconds, pollSeconds: limits.pollSeconds };
      const result = await change(bmc, aim, intent(command));
      if (result.kind === 'reached') return result.commanded;
      throw thrown(result.failure);
    }

    async function arm(bmc: LeasedBmc): Promise<void> {
      const { write, answered } = intent('network');
      if ((await write(bmc.lease)).kind === 'lease-lost') throw new MetalflowError('bmc_busy', { address: bmcName(address) });
      const began = clock.now();
      const answer = await bmc.bootOnceFromNetwork();
      await answered(answer);
      if (answer.kind === 'accepted') return;
      if (answer.kind === 'refused') throw thrown(refusal(answer, 'one-time network boot', address));
      if (answer.kind === 'not-sent') throw new MetalflowError('bmc_not_sent', { command: stepText('network'), address: bmcName(address), why: answer.why });
      // Armed or not: only the next boot would tell, and that may be a disk's.
      tell(answer.why);
      throw new MetalflowError('bmc_unreachable', { address: bmcName(address), seconds: secondsSince(began) });
    }

    function intent(command: Step): PowerIntent {
      const id = `by-hand/${randomUUID()}`;
      return {
        async write(lease) {
          if (lease === null) return { kind: 'first' };
          if (device === null) return (await stores.power.lock(lease.bmc, lease.holder, lease.seconds)) ? { kind: 'first' } : { kind: 'lease-lost' };
          const written = await stores.power.intendByHand(device.id, { id, command, text: `${stepText(command)} asked ${why}`, by, duringRun: ask.duringRun }, lease);
          if (written.kind === 'run-open') throw new MetalflowError('bmc_run_open', { node: device.name, run: written.run });
          return written.kind === 'written' ? { kind: 'first' } : written;
        },
        async answered(answer) {
          changedAt = new Date(clock.now()).toISOString();
          if (device !== null) await stores.power.answered(id, answer);
        },
      };
    }

    /** In the device's journal here, and in NetBox's where it can be reached. */
    async function record(text: string): Promise<void> {
      if (!device) return;
      await stores.devices.journal(device.id, null, 'power', text, by);
      await netbox.addJournalEntry(device.id, 'info', text).catch((error: Error) => tell(`NetBox's journal was not written: ${error.message}`));
    }
  };
}
