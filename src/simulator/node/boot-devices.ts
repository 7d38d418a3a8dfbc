/** Which devices firmware tries, in which order: pure. */
import type { Behaviours } from './behaviours.js';
import type { BootDevice } from './nvram.js';

/** `network` is a one-time boot from the network, armed through the BMC; `disk` is none, so the firmware's own order counts. */
export type OneTimeBoot = 'network' | 'disk';

const ANY_DISK: BootDevice = { kind: 'disk', serial: null };
const NETWORK: BootDevice = { kind: 'network' };

const isSame = (a: BootDevice, b: BootDevice): boolean => a.kind === b.kind && (a.kind === 'network' || b.kind === 'network' || a.serial === b.serial);

/** A one-time boot that fails goes on with the firmware's own order; a device is tried once. */
export function bootDevices(order: readonly BootDevice[], oneTime: OneTimeBoot, { bootsDiskAlways }: Behaviours): readonly BootDevice[] {
  if (bootsDiskAlways) return [ANY_DISK, NETWORK];
  const devices = oneTime === 'network' ? [NETWORK, ...order] : order;
  return devices.filter((device, index) => devices.findIndex((other) => isSame(device, other)) === index);
}
