/** What the power reads, kept on the device's row. AMT shares the host's NIC: for a while after a power change its silence says nothing. */
import { powerWord, wasNotAsked, type PowerReading } from '../domain/power.js';
import type { BmcAddress } from '../contracts/device.js';
import type { Stores } from '../contracts/store.js';
import type { LeasedBmc } from './lease.js';
import type { Clock } from './caller.js';

export interface PowerReader {
  /** One read, as it is shown. */
  observe(bmc: LeasedBmc, deviceId: string, settlingSeconds: number): Promise<PowerReading>;
  /** The same, without keeping it. */
  read(bmc: LeasedBmc, deviceId: string, settlingSeconds: number): Promise<PowerReading>;
}

export function createPowerReader({ stores, clock }: { stores: { power: Pick<Stores['power'], 'lastChangeAt'>; devices: Pick<Stores['devices'], 'setPower'> }; clock: Clock }): PowerReader {
  async function settling(reading: PowerReading, address: BmcAddress, deviceId: string, settlingSeconds: number): Promise<PowerReading> {
    if (address.type !== 'amt' || wasNotAsked(reading) || reading.kind !== 'unknown' || reading.code !== 'bmc_unreachable') return reading;
    const changed = await stores.power.lastChangeAt(deviceId);
    const age = changed ? (clock.now() - Date.parse(changed)) / 1000 : Infinity;
    return age < settlingSeconds ? { kind: 'settling', why: `${reading.why}; the power changed ${Math.round(age)} s ago` } : reading;
  }

  const read: PowerReader['read'] = async (bmc, deviceId, settlingSeconds) => settling(await bmc.observePower(), bmc.address, deviceId, settlingSeconds);
  return {
    read,
    async observe(bmc, deviceId, settlingSeconds) {
      const reading = await read(bmc, deviceId, settlingSeconds);
      if (!wasNotAsked(reading)) await stores.devices.setPower(deviceId, powerWord(reading));
      return reading;
    },
  };
}
