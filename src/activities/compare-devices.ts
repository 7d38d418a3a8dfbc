/**
 * Devices compared with what NetBox said when each was read last, some at a time: for what no list of changed devices shows. A device
 * that was deleted is on none, and MACs, addresses and config contexts move no last_updated.
 */
import { isMetalflowError, type MetalflowError } from '../domain/errors.js';
import type { Device } from '../contracts/device.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { Stores } from '../contracts/store.js';

/** Three requests to NetBox, whatever hangs on them. */
export const COMPARED_AT_ONCE = 50;

export interface CompareDeps {
  readonly devices: Pick<Stores['devices'], 'nextToCompare' | 'isAsRegistered'>;
  readonly netbox: Pick<NetboxClient, 'readDevices'>;
}

/** What NetBox says of a device, stamps aside; two that say the same are no news. */
function wordsOf(device: Device | MetalflowError | undefined): string {
  if (device === undefined) return 'gone';
  return isMetalflowError(device) ? device.message : JSON.stringify({ ...device, lastUpdated: null, etag: null });
}

/** @returns compares the next devices, and tells of those that differ */
export function createComparison({ devices, netbox }: CompareDeps): (tell: (deviceId: string) => Promise<void>) => Promise<void> {
  /** Of those that differ and will go on to (a MAC that two devices declare): what was told of them. Another process tells it once more. */
  const told = new Map<string, string>();

  return async (tell) => {
    const ids = await devices.nextToCompare(COMPARED_AT_ONCE);
    const read = await netbox.readDevices(ids);
    for (const id of ids) {
      const device = read.get(id);
      const words = wordsOf(device);
      if (device !== undefined && !isMetalflowError(device) && (await devices.isAsRegistered(device))) told.delete(id);
      else if (told.get(id) !== words) {
        await tell(id);
        told.set(id, words);
      }
    }
  };
}
