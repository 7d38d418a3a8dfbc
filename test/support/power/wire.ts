/** A BMC and its machine in virtual time, with everything that the field does to a command: lag, lost answers, requests that never come. */
import type { Bmc, BmcFactory, CommandResult, UuidReading } from '../../../src/contracts/bmc.js';
import type { PowerReading } from '../../../src/domain/power.js';
import { UUID } from '../store-bench.js';
import type { VirtualTime } from './virtual-time.js';

type Power = 'on' | 'off';

/** What happens to a request on its way. */
export type Fate = 'answered' | 'answer-lost' | 'dropped' | 'no-connection' | 'slow' | 'refused';

export interface WireCommand {
  readonly command: Power;
  /** The intent of the activity that sent it. */
  readonly intent: string;
}

export class Wire {
  /** What the machine is, whatever is read. */
  power: Power;
  #shown: { power: Power; until: number } | null = null;
  readonly commands: WireCommand[] = [];
  /** What the machine really was at each read of it, in order. */
  readonly reads: { readonly said: PowerReading; readonly actual: Power }[] = [];
  inFlight = 0;
  mostInFlight = 0;

  constructor(readonly time: VirtualTime, readonly options: { power: Power; lagMs: () => number; fateOfCommand: () => Fate; fateOfRead: () => 'answered' | 'lost' | 'slow'; readMs: () => number }) {
    this.power = options.power;
  }

  /** What one worker has in its hands; `alive` false: its process is gone, and nothing it does comes to anything. */
  factory(worker: { alive: boolean; intent: string }): BmcFactory {
    const { time, options } = this;
    const onWire = async <T>(ms: number, request: () => T): Promise<T> => {
      if (!worker.alive) await new Promise(() => undefined);
      this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
      try {
        const answer = request();
        await time.pause(ms);
        if (!worker.alive) await new Promise(() => undefined);
        return answer;
      } finally {
        this.inFlight--;
      }
    };
    const command = (to: Power): Promise<CommandResult> => {
      const fate = options.fateOfCommand();
      if (fate === 'no-connection') return onWire(10, () => ({ kind: 'not-sent', why: 'connection refused' }) as const);
      return onWire(fate === 'slow' ? 30_000 : 20, (): CommandResult => {
        this.commands.push({ command: to, intent: worker.intent });
        if (fate === 'refused') return { kind: 'refused', code: 'bmc_refused', why: 'not ready', details: { returnValue: '2' } };
        if (fate !== 'dropped') this.#obey(to);
        return fate === 'answered' ? { kind: 'accepted' } : { kind: 'unknown', why: fate };
      });
    };
    const bmc = (address: Bmc['address']): Bmc => ({
      address,
      observePower: () => {
        const fate = options.fateOfRead();
        return onWire(fate === 'slow' ? 30_000 : options.readMs(), () => {
          const said: PowerReading = fate === 'answered' ? { kind: 'read', power: this.#reading() === 'on' ? 'on' : 'off-soft' } : { kind: 'unknown', code: 'bmc_unreachable', why: fate };
          this.reads.push({ said, actual: this.power });
          return said;
        });
      },
      machineUuid: () => onWire(options.readMs(), (): UuidReading => ({ kind: 'read', uuid: UUID })),
      powerOn: () => command('on'),
      powerOff: () => command('off'),
      bootOnceFromNetwork: async () => ({ kind: 'accepted' }),
      identify: async () => null,
      capabilities: async () => null,
      diagnose: async () => [],
      close: async () => undefined,
    });
    return { open: async (address) => bmc(address) };
  }

  #obey(to: Power): void {
    if (this.power === to) return;
    this.#shown = { power: this.power, until: this.time.now() + this.options.lagMs() };
    this.power = to;
  }
  #reading(): Power {
    return this.#shown && this.time.now() < this.#shown.until ? this.#shown.power : this.power;
  }
}
