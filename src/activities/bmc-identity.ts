/** Which BMC a run had to do with: product and firmware, once a run, in the journal where people look when it misbehaves. */
import { isMetalflowError } from '../domain/errors.js';
import type { BmcFactory, BmcIdentity } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import { bmcName, createBmcLeases } from '../power/lease.js';
import { activityCaller, activityClock, cancellationSignal, fenceRef, type RunRef } from './context.js';

export interface BmcIdentityDeps {
  readonly bmc: BmcFactory;
  readonly stores: Pick<Stores, 'fence' | 'power' | 'devices'>;
  readonly lockSeconds: number;
}

export function createBmcIdentityActivities({ bmc, stores, lockSeconds }: BmcIdentityDeps) {
  const leases = createBmcLeases({ bmc, power: stores.power, lockSeconds, clock: activityClock, caller: activityCaller });
  return {
    /** Never a reason for a run to fail: null where the BMC does not say, cannot be talked to, or is busy. */
    async noteBmc(input: RunRef & { bmc: BmcAddress }): Promise<BmcIdentity | null> {
      await stores.fence.enter(fenceRef(input));
      const identity = await leases.withIdleBmc(input.bmc, (leased) => leased.identify()).catch((error: unknown) => {
        cancellationSignal().throwIfAborted();
        if (isMetalflowError(error)) return null;
        throw error;
      });
      if (identity === null || identity === 'busy') return null;
      await stores.devices.journal(input.deviceId, input.run, 'run', `the BMC at ${bmcName(input.bmc)} is ${identity.product} ${identity.version}`.slice(0, 300));
      return identity;
    },
  };
}
export type BmcIdentityActivities = ReturnType<typeof createBmcIdentityActivities>;
