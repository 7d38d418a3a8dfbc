/** The power of the simulated machine: what it is, what AMT says it is, and what may be asked of it. */
import { POWER_NAMES, type PowerName, type PowerValue } from '../../domain/power.js';
import type { BootOrder } from './boot-order.js';
import type { AmtFaults } from './faults.js';

/** The machine that the simulated AMT manages. */
export interface SimulatedMachine {
  powerOn(boot: 'network' | 'disk'): void | Promise<void>;
  powerOff(): void | Promise<void>;
}

/** ReturnValues of RequestPowerStateChange. */
const ACCEPTED = 0;
const NOT_NOW = 2;
const INVALID_PARAMETER = 5;

const VALUES = Object.fromEntries(Object.entries(POWER_NAMES).map(([value, name]) => [name, Number(value) as PowerValue])) as Record<PowerName, PowerValue>;

/** Requests by the state in which they are available. */
const AVAILABLE: Readonly<Record<PowerName, readonly number[]>> = {
  on: [10, 8, 5, 11],
  'sleep-light': [2, 8],
  'sleep-deep': [2, 8],
  hibernate: [2, 8],
  'off-soft': [2],
  'off-hard': [2],
};

/** Available while on, with an agent in the operating system. */
const BY_AGENT = [4, 7, 14, 12];
/** Refused while a redirection session is open; a reset is not. */
const KEPT_BY_REDIRECTION = [5, 8, 12];

export const isOff = (power: PowerName): boolean => power === 'off-soft' || power === 'off-hard';

export interface PowerState {
  actual(): PowerName;
  /** What a read gets: stale while a change settles. Counts as one read. */
  read(): { readonly value: number; readonly available: readonly number[] };
  /** RequestPowerStateChange. @returns its ReturnValue */
  request(value: number): number;
  /** The button, the mains, or the operating system. */
  press(power: PowerName): void;
  /** When it last changed, milliseconds since the epoch; -Infinity before the first change. */
  changedAt(): number;
}

export interface PowerStateDeps {
  readonly initial: PowerName;
  readonly bootOrder: BootOrder;
  readonly faults: AmtFaults;
  readonly now: () => Date;
  /** Called in order, after the state has changed. */
  readonly effect: (effect: { kind: 'on'; boot: 'network' | 'disk' } | { kind: 'off' }) => void;
}

export function createPowerState({ initial, bootOrder, faults, now, effect }: PowerStateDeps): PowerState {
  let power = initial;
  let stale: { shown: PowerName; until: number; reads: number } | null = null;
  let changedAt = Number.NEGATIVE_INFINITY;

  const settling = (): boolean => stale !== null && (now().getTime() < stale.until || stale.reads > 0);

  function change(to: PowerName): void {
    const from = power;
    power = to;
    changedAt = now().getTime();
    if (isOff(from) && to === 'on') effect({ kind: 'on', boot: bootOrder.consume() });
    if (!isOff(from) && isOff(to)) effect({ kind: 'off' });
  }

  function obey(value: number): void {
    const shown = power;
    stale = { shown, until: now().getTime() + faults.lagMs, reads: faults.lagReads };
    switch (value) {
      case 2:
        return faults.neverOn ? undefined : change('on');
      case 4:
        return change('sleep-deep');
      case 7:
        return change('hibernate');
      case 8:
      case 12:
        return faults.neverOff ? undefined : change('off-soft');
      case 5:
      case 10:
      case 14:
        change('off-soft');
        change('on');
    }
  }

  const available = (of: PowerName): readonly number[] => (of === 'on' && faults.osAgent ? [...AVAILABLE.on, ...BY_AGENT] : AVAILABLE[of]);

  return {
    actual: () => power,
    changedAt: () => changedAt,
    read() {
      const shown = settling() ? stale!.shown : power;
      if (stale && stale.reads > 0) stale.reads -= 1;
      return { value: faults.readsAs ?? VALUES[shown], available: available(shown) };
    },
    request(value) {
      if (!Number.isInteger(value) || value < 1 || value > 17) return INVALID_PARAMETER;
      if (settling() || !available(power).includes(value)) return NOT_NOW;
      if (faults.redirectionOpen && KEPT_BY_REDIRECTION.includes(value)) return NOT_NOW;
      obey(value);
      return ACCEPTED;
    },
    press(to) {
      stale = null;
      change(to);
    },
  };
}
