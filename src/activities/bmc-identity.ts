/** Which BMC a run had to do with: product and firmware, once a run, in the journal where people look when it misbehaves. */
import { isMetalflowError } from '../domain/errors.js';
import type { Bmc, BmcFactory, BmcIdentity } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import { fenceRef, holderName, pause, type RunRef } from './context.js';

export interface BmcIdentityDeps {
  readonly bmc: BmcFactory;
  readonly stores: Pick<Stores, 'fence' | 'power' | 'devices'>;
  readonly lockSeconds: number;
}

/** Tries for the lease on the BMC, a quarter of a second apart: an identity is not worth a longer wait. */
const LOCK_TRIES = 20;

const where = ({ host, port, type }: BmcAddress): string => (port ? `${host}:${port}` : host || type);

export function createBmcIdentityActivities({ bmc: factory, stores, lockSeconds }: BmcIdentityDeps) {
  async function identify(address: BmcAddress): Promise<BmcIdentity | null> {
    let bmc: Bmc;
    try {
      bmc = await factory.open(address);
    } catch (error) {
      if (isMetalflowError(error)) return null;
      throw error;
    }
    try {
      return await bmc.identify();
    } finally {
      await bmc.close();
    }
  }

  return {
    /** Never a reason for a run to fail: null where the BMC does not say, or is busy with another command. */
    async noteBmc(input: RunRef & { bmc: BmcAddress }): Promise<BmcIdentity | null> {
      await stores.fence.enter(fenceRef(input));
      const [key, holder] = [where(input.bmc), holderName()];
      for (let tries = 1; !(await stores.power.lock(key, holder, lockSeconds)); tries += 1) {
        if (tries === LOCK_TRIES) return null;
        await pause(250);
      }
      try {
        const identity = await identify(input.bmc);
        if (identity) await stores.devices.journal(input.deviceId, input.run, 'run', `the BMC at ${key} is ${identity.product} ${identity.version}`.slice(0, 300));
        return identity;
      } finally {
        await stores.power.unlock(key, holder);
      }
    },
  };
}
export type BmcIdentityActivities = ReturnType<typeof createBmcIdentityActivities>;
