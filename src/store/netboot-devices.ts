/** The devices that may boot from the network: the gate knows the same ones. */
import type { NetbootDevice, NetbootDevices } from '../contracts/dhcp.js';
import { MetalflowError } from '../domain/errors.js';
import { ENDED_STATES } from '../domain/states.js';
import type { Db } from './database.js';

export function createNetbootDevices({ db }: { db: Db }): NetbootDevices {
  return {
    async list() {
      const rows = await db
        .selectFrom('device')
        .innerJoin('device_mac', 'device_mac.device_id', 'device.device_id')
        .select(['device.device_id', 'device.name', 'device_mac.mac'])
        .where('device.state', 'not in', [...ENDED_STATES])
        .orderBy('device_mac.mac')
        .execute()
        .catch((error: Error) => {
          throw new MetalflowError('store_unavailable', { why: error.message }, { cause: error });
        });
      const devices = new Map<string, NetbootDevice & { macs: string[] }>();
      for (const { device_id: deviceId, name, mac } of rows) {
        const device = devices.get(deviceId) ?? { deviceId, name, macs: [] };
        device.macs.push(mac);
        devices.set(deviceId, device);
      }
      return [...devices.values()].sort((a, b) => Number(a.deviceId) - Number(b.deviceId));
    },
  };
}
