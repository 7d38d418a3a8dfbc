/** The power activities of a run around a real driver: the store is a few variables, the rest is as in the house. */
import type { createPowerActivities, PowerActivities, PowerActivitiesDeps } from '../../src/activities/power.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { runActivity } from './activity-env.js';

export interface PowerBench {
  readonly deps: PowerActivitiesDeps;
  /** Checks the machine, arms and powers on, powers off, and confirms off: each as a run asks it, and each reached. */
  throughALife(activities: ReturnType<typeof createPowerActivities>): Promise<void>;
}

export function powerBench(address: BmcAddress, systemUuid: string, open: () => Promise<Bmc>): PowerBench {
  const intents = new Map<string, { answer: Parameters<PowerActivitiesDeps['stores']['power']['answered']>[1] | null; writtenAt: string }>();
  let locked: string | null = null;
  const deps: PowerActivitiesDeps = {
    lockSeconds: 60,
    bmc: { open },
    stores: {
      fence: { enter: async () => 'held' } as never,
      devices: { setPower: async () => undefined, find: async () => ({ approvedUuid: null }) } as never,
      power: {
        intend: async (_ref, { id }) => {
          const there = intents.get(id);
          if (there) return { kind: 'again', ...there };
          intents.set(id, { answer: null, writtenAt: new Date().toISOString() });
          return { kind: 'first' };
        },
        answered: async (id, answer) => void intents.set(id, { ...intents.get(id)!, answer }),
        lock: async (_bmc, holder) => (locked ??= holder) === holder,
        unlock: async () => void (locked = null),
        lastChangeAt: async () => null,
      },
    },
  };
  const caller = { workflowId: 'node/7/run/1', temporalRunId: 'temporal-run-1' };
  const limits = { limitSeconds: 120, settlingSeconds: 1, pollSeconds: 0.2 };
  const ref = { deviceId: '7', run: 1, bmc: address };
  const change = (activities: PowerActivities, command: 'on' | 'off', intent: string): Promise<unknown> => runActivity(caller, activities.changePower, { ...ref, ...limits, command, intent });
  return {
    deps,
    async throughALife(activities) {
      expect(await runActivity(caller, activities.checkMachine, { ...ref, ...limits, systemUuid })).toEqual({ kind: 'same', uuid: systemUuid });
      expect(await change(activities, 'off', 'already-off')).toEqual({ kind: 'reached', power: 'off', commanded: false });
      expect(await runActivity(caller, activities.bootOnceFromNetwork, { ...ref, limitSeconds: 30 })).toEqual({ kind: 'armed' });
      expect(await change(activities, 'on', 'on')).toEqual({ kind: 'reached', power: 'on', commanded: true });
      expect(await change(activities, 'on', 'on')).toEqual({ kind: 'reached', power: 'on', commanded: false });
      expect(await runActivity(caller, activities.confirmOff, { ...ref, ...limits, limitSeconds: 1, systemUuid, apartSeconds: 0.1 })).toMatchObject({ kind: 'not-off', power: 'on', failure: { code: 'bmc_still_on' } });
      expect(await change(activities, 'off', 'off')).toEqual({ kind: 'reached', power: 'off', commanded: true });
      expect(await runActivity(caller, activities.confirmOff, { ...ref, ...limits, systemUuid, apartSeconds: 0.1 })).toEqual({ kind: 'off-twice' });
    },
  };
}
