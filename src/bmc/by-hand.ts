/**
 * Power by a person's hand, by the rules of the runs: read first, what is there is not asked for again; one command at most, and
 * observed until it shows or the limit passes; off and on, never cycle; unreachable is unknown, never off.
 */
import { powerWord, readsOff, readsOn, type PowerReading } from '../domain/power.js';
import { MetalflowError } from '../domain/errors.js';
import type { Bmc, CommandResult } from '../contracts/bmc.js';

export interface HandLimits {
  /** Seconds until a state has to be there. */
  readonly powerSeconds: number;
  /** Seconds for which the silence of an AMT after a command says nothing, on top. */
  readonly settlingSeconds: number;
  readonly pollSeconds: number;
}

export interface HandDeps {
  readonly bmc: Bmc;
  /** For the texts. */
  readonly address: string;
  readonly limits: HandLimits;
  /** Makes sure that nobody else talks to this BMC. @throws bmc_busy */
  readonly keepLease: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
  /** Milliseconds; never set back. */
  readonly clock: () => number;
  /** Told to the person who waits. */
  readonly tell: (text: string) => void;
}

export interface Hand {
  /** @returns whether a command was sent. @throws the failure that a run would hold with */
  power(command: 'on' | 'off'): Promise<'sent' | 'nothing-to-do'>;
  /** Arms one boot from the network. */
  arm(): Promise<void>;
  observe(): Promise<PowerReading>;
}

export function createHand({ bmc, address, limits, keepLease, sleep, clock, tell }: HandDeps): Hand {
  const secret = `bmc-${bmc.address.type}`;

  async function observe(): Promise<PowerReading> {
    await keepLease();
    return bmc.observePower();
  }

  function taken(answer: CommandResult, step: string): void {
    if (answer.kind === 'refused') {
      throw new MetalflowError(answer.code, { step, value: answer.details?.['value'] ?? '?', meaning: answer.why, task: answer.details?.['task'] ?? answer.why, address, secret, why: answer.why, ...answer.details });
    }
    if (answer.kind === 'not-sent') throw unreachable(answer.why);
  }

  const unreachable = (why: string): MetalflowError => {
    tell(why);
    return new MetalflowError('bmc_unreachable', { address, seconds: limits.powerSeconds });
  };

  return {
    observe,
    async power(command) {
      const reached = command === 'off' ? readsOff : readsOn;
      const before = await observe();
      if (reached(before)) return 'nothing-to-do';
      if (before.kind === 'unknown') {
        if (before.code === 'bmc_unreachable') throw unreachable(before.why);
        throw new MetalflowError(before.code, { address, secret, why: before.why, step: 'reading the power state', value: before.why, meaning: before.why });
      }
      await keepLease();
      const answer = await (command === 'on' ? bmc.powerOn() : bmc.powerOff());
      taken(answer, `power ${command}`);
      if (answer.kind === 'unknown') tell(`no answer to ${command} (${answer.why}): it is not sent again, only looked at`);
      const began = clock();
      for (let shown = ''; ; ) {
        const reading = await observe();
        if (reached(reading)) return 'sent';
        const word = powerWord(reading);
        if (word !== shown) tell(`asked ${command}; reads ${word}${reading.kind === 'read' ? '' : ` (${reading.why})`}`);
        shown = word;
        const patience = limits.powerSeconds + (reading.kind === 'read' || bmc.address.type !== 'amt' ? 0 : limits.settlingSeconds);
        if (clock() - began >= patience * 1000) throw tooLate(command, reading, answer);
        await sleep(limits.pollSeconds * 1000);
      }
    },
    async arm() {
      await keepLease();
      const answer = await bmc.bootOnceFromNetwork();
      taken(answer, 'one-time network boot');
      // Armed or not: only the next boot would tell, and that may be a disk's.
      if (answer.kind === 'unknown') throw unreachable(answer.why);
    },
  };

  function tooLate(command: 'on' | 'off', reading: PowerReading, answer: CommandResult): MetalflowError {
    const power = reading.kind === 'read' ? reading.power : powerWord(reading);
    if (reading.kind !== 'read') return new MetalflowError('bmc_unreachable', { address, seconds: limits.powerSeconds });
    if (answer.kind === 'unknown') return new MetalflowError('bmc_outcome_unknown', { command, power });
    return new MetalflowError(command === 'off' ? 'bmc_still_on' : 'bmc_still_off', { power });
  }
}
