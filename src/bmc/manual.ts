/** A node without a BMC: a person does what metalflow asks for, and says so with `resume`. */
import type { Bmc, CommandResult } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';

const NO_BMC = 'this node has no BMC: a person powers it';

/** The run holds with `bmc_manual_task` and shows the task; it goes on by the person's word, never by an observation. */
const task = (words: string): CommandResult => ({ kind: 'refused', code: 'bmc_manual_task', why: NO_BMC, details: { task: words } });

export function createManualBmc(address: BmcAddress): Bmc {
  return {
    address,
    // Never off: what nobody reads is unknown.
    observePower: async () => ({ kind: 'unknown', code: 'bmc_unreachable', why: NO_BMC }),
    machineUuid: async () => ({ kind: 'unreadable', why: NO_BMC }),
    powerOn: async () => task('power the node on and boot it once from the network'),
    powerOff: async () => task('power the node off'),
    // Nothing can be armed ahead: the boot device is chosen by the person who powers on, and that task says so.
    bootOnceFromNetwork: async () => ({ kind: 'accepted' }),
    identify: async () => null,
    capabilities: async () => ({ bootOnceFromNetwork: true }),
    diagnose: async () => [],
    close: async () => undefined,
  };
}
