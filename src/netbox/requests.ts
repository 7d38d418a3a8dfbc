/** A person's request, made through metalflow: it becomes the field in NetBox, so that NetBox stays the one desired state. */
import type { Device } from '../contracts/device.js';
import type { WriteResult } from '../contracts/netbox.js';
import type { NetboxRequests } from '../contracts/operator.js';
import { MetalflowError } from '../domain/errors.js';
import type { DevicePatch } from './client.js';

/** A write that lost against another is judged again on what is there now. */
const TRIES = 3;

export function createRequests(deps: {
  readDevice(deviceId: string): Promise<Device | null>;
  patchDevice(device: Device, patch: DevicePatch, message: string): Promise<WriteResult>;
}): NetboxRequests {
  return {
    async request(deviceId, action, by) {
      for (let attempt = 1; attempt <= TRIES; attempt++) {
        const device = await deps.readDevice(deviceId);
        if (device === null) throw new MetalflowError('device_not_found', { device: deviceId });
        if (device.desiredAction === action && device.unknownAction === null) return;
        // Two people asking for different things is for them to settle; the later one does not win by being later.
        if (action !== null && device.desiredAction !== null) throw new MetalflowError('request_pending', { asked: device.desiredAction });
        const written = await deps.patchDevice(device, { custom_fields: { desired_action: action } }, `${by} ${action === null ? 'takes the request back' : `asks for ${action}`} (metalflow)`);
        if (written.kind === 'written') return;
        if (written.kind === 'gone') throw new MetalflowError('device_not_found', { device: deviceId });
      }
      throw new MetalflowError('netbox_conflict', { field: 'the device', value: 'something else each time we tried' });
    },
  };
}
