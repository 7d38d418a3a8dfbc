/**
 * Power by a person's hand, by the rules of the runs: read first, what is there is not asked for again; intent written before the wire;
 * one command at most, and observed until it shows or the limit passes; off and on, never cycle; unreachable is unknown, never off.
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

export type HandCommand = 'on' | 'off' | 'network';

export interface HandDeps {
  readonly bmc: Bmc;
  /** For the texts. */
  readonly address: string;
  readonly limits: HandLimits;
  /**
   * Writes down what is about to be sent, under a lease that nobody else has. @returns what keeps the answer
   * @throws bmc_busy, bmc_run_open; then nothing is sent
   */
  readonly intend: (command: HandCommand) => Promise<(answer: CommandResult) => Promise<void>>;
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
}

export function createHand({ bmc, address, limits, intend, sleep, clock, tell }: HandDeps): Hand {
  const secret = `bmc-${bmc.address.type}`;

  async function send(command: HandCommand, step: string, request: () => Promise<CommandResult>): Promise<CommandResult> {
    const keep = await intend(command);
    const answer = await request();
    await keep(answer);
    if (answer.kind === 'refused') {
      throw new MetalflowError(answer.code, { step, value: answer.details?.['value'] ?? '?', meaning: answer.why, task: answer.details?.['task'] ?? answer.why, address, secret, why: answer.why });
    }
    if (answer.kind === 'not-sent') throw unreachable(answer.why);
    return answer;
  }

  const unreachable = (why: string): MetalflowError => {
    tell(why);
    return new MetalflowError('bmc_unreachable', { address, seconds: limits.powerSeconds });
  };

  async function untilThere(command: 'on' | 'off', answer: CommandResult): Promise<void> {
    const reached = command === 'off' ? readsOff : readsOn;
    const began = clock();
    for (let shown = ''; ; ) {
      const reading = await bmc.observePower();
      if (reached(reading)) return;
      const word = powerWord(reading);
      if (word !== shown) tell(`asked ${command}; reads ${word}${reading.kind === 'read' ? '' : ` (${reading.why})`}`);
      shown = word;
      const patience = limits.powerSeconds + (reading.kind === 'read' || bmc.address.type !== 'amt' ? 0 : limits.settlingSeconds);
      if (clock() - began >= patience * 1000) throw tooLate(command, reading, answer);
      await sleep(limits.pollSeconds * 1000);
    }
  }

  function tooLate(command: 'on' | 'off', reading: PowerReading, answer: CommandResult): MetalflowError {
    if (reading.kind !== 'read') return unreachable(reading.why);
    if (answer.kind === 'unknown') return new MetalflowError('bmc_outcome_unknown', { command, power: reading.power });
    return new MetalflowError(command === 'off' ? 'bmc_still_on' : 'bmc_still_off', { power: reading.power });
  }

  return {
    async power(command) {
      const before = await bmc.observePower();
      if ((command === 'off' ? readsOff : readsOn)(before)) return 'nothing-to-do';
      if (before.kind === 'unknown') {
        if (before.code === 'bmc_unreachable') throw unreachable(before.why);
        throw new MetalflowError(before.code, { address, secret, why: before.why, step: 'reading the power state', value: before.why, meaning: before.why });
      }
      const answer = await send(command, `power ${command}`, () => (command === 'on' ? bmc.powerOn() : bmc.powerOff()));
      if (answer.kind === 'unknown') tell(`no answer to ${command} (${answer.why}): it is not sent again, only looked at`);
      await untilThere(command, answer);
      return 'sent';
    },
    async arm() {
      const answer = await send('network', 'one-time network boot', () => bmc.bootOnceFromNetwork());
      // Armed or not: only the next boot would tell, and that may be a disk's.
      if (answer.kind === 'unknown') throw unreachable(answer.why);
    },
  };
}
