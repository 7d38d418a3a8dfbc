/** A run's request for on or off: by the rules of src/power, within the fence, the intent in the ledger. */
import type { Stores } from '../contracts/store.js';
import type { PowerAim, PowerChangeResult, PowerChanger } from '../power/change-power.js';
import type { BmcLeases } from '../power/lease.js';
import { fenceRef, type RunRef } from './context.js';

export interface PowerChange extends RunRef, PowerAim {
  /** One intent, one command at most; the workflow draws a new one for each request. */
  readonly intent: string;
}

export interface ChangePowerDeps {
  readonly leases: BmcLeases;
  readonly change: PowerChanger;
  readonly stores: Pick<Stores, 'fence' | 'power'>;
}

export function createChangePower({ leases, change, stores }: ChangePowerDeps): (input: PowerChange) => Promise<PowerChangeResult> {
  return async (input) => {
    const ref = fenceRef(input);
    await stores.fence.enter(ref);
    return leases.withBmc(input.bmc, (bmc) => change(bmc, input, {
      write: (lease) => stores.power.intend(ref, { id: input.intent, command: input.command }, lease),
      answered: (answer) => stores.power.answered(input.intent, answer),
    }));
  };
}
