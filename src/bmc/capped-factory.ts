/**
 * A cap on the calls of BMCs under way in one worker. It counts calls and not conversations: between two looks of a long wait a
 * conversation holds no connection, and a site whose BMCs are all dead must not keep the others waiting for minutes.
 */
import type { Bmc, BmcFactory, CommandResult } from '../contracts/bmc.js';

export interface CappedBmcFactoryDeps {
  readonly factory: BmcFactory;
  /** Calls under way at once. */
  readonly most: number;
  /** Milliseconds a call waits for its turn; with the call itself less than an activity may be silent (limit `activityTry`), and than a request may take of the lease. */
  readonly waitMs?: number;
}

const WAIT_MS = 8000;

/** In the order in which they came. */
function createTurns(most: number, waitMs: number): { take(): Promise<boolean>; giveBack(): void } {
  let free = most;
  const waiting = new Set<() => void>();
  return {
    take() {
      if (free > 0) {
        free -= 1;
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        const called = (): void => {
          clearTimeout(timer);
          waiting.delete(called);
          resolve(true);
        };
        const timer = setTimeout(() => {
          waiting.delete(called);
          resolve(false);
        }, waitMs);
        waiting.add(called);
      });
    },
    giveBack() {
      const [next] = waiting;
      if (next) next();
      else free += 1;
    },
  };
}

/** A call that gets no turn in time is `not-sent`, or `unknown` with `notAsked`; its caller asks again. */
export function createCappedBmcFactory({ factory, most, waitMs = WAIT_MS }: CappedBmcFactoryDeps): BmcFactory {
  const turns = createTurns(most, waitMs);
  const why = `no turn within ${waitMs} ms: ${most} calls of BMCs are under way in this worker (METALFLOW_BMC_CALLS)`;

  async function inTurn<T>(call: () => Promise<T>, without: T): Promise<T> {
    if (!(await turns.take())) return without;
    try {
      return await call();
    } finally {
      turns.giveBack();
    }
  }
  const notSent: CommandResult = { kind: 'not-sent', why };
  const unasked = { kind: 'unknown', code: 'bmc_unreachable', why, notAsked: true } as const;

  const capped = (bmc: Bmc): Bmc => ({
    address: bmc.address,
    observePower: () => inTurn(() => bmc.observePower(), unasked),
    machineUuid: () => inTurn(() => bmc.machineUuid(), unasked),
    powerOn: () => inTurn(() => bmc.powerOn(), notSent),
    powerOff: () => inTurn(() => bmc.powerOff(), notSent),
    bootOnceFromNetwork: () => inTurn(() => bmc.bootOnceFromNetwork(), notSent),
    identify: () => inTurn(() => bmc.identify(), null),
    capabilities: () => inTurn(() => bmc.capabilities(), null),
    // A person waits for it, and for one BMC.
    diagnose: (host) => bmc.diagnose(host),
    close: () => bmc.close(),
  });

  return {
    async open(address) {
      const bmc = await factory.open(address);
      return address.type === 'manual' ? bmc : capped(bmc);
    },
  };
}
