/** NetBox, seen from the activities: desired state in, status and journal out; no decisions. */
import type { MetalflowError } from '../domain/errors.js';
import type { NetboxStatus } from '../domain/states.js';
import type { Device } from './device.js';

export interface ChangedDevice {
  readonly id: string;
  /** An instant of NetBox, as it spells it. */
  readonly lastUpdated: string;
}

/** Of a device that could not be read; in the details of its `device_invalid`. */
export type UnreadDevice = {
  /** Empty where NetBox has none. */
  readonly name: string;
  readonly status: string;
  /** The first of the fields desired_action, node_class, bmc_type that is set; empty when none is: then the device is none of ours. */
  readonly claim: string;
};

export type NetboxFields = { readonly desired_action?: null; readonly lifecycle_state?: string; readonly lifecycle_url?: string };

/** `conflict`: NetBox refused the If-Match; somebody wrote in between. */
export type WriteResult = { readonly kind: 'written'; readonly device: Device } | { readonly kind: 'conflict' } | { readonly kind: 'gone' };

/**
 * Every method throws MetalflowError `netbox_unreachable` (retryable) when NetBox does not answer or refuses the token, and
 * `device_invalid` when a field cannot be read as what it should be; one of a read has the members of `UnreadDevice` in its details.
 */
export interface NetboxClient {
  /** null when NetBox has no such device. */
  readDevice(deviceId: string): Promise<Device | null>;
  /**
   * Several devices in a few requests, without their ETags: to compare, not to write. One that NetBox does not have is absent, and one
   * that cannot be read is its `device_invalid`.
   */
  readDevices(deviceIds: readonly string[]): Promise<ReadonlyMap<string, Device | MetalflowError>>;
  /** With If-Match on the device's ETag. */
  writeDevice(device: Device, change: { status?: NetboxStatus; fields?: NetboxFields; message: string }): Promise<WriteResult>;
  addJournalEntry(deviceId: string, kind: 'info' | 'success' | 'warning' | 'danger', comments: string): Promise<void>;
  /** Devices whose desired_action is set or that changed at or after `since`; all devices when it is null. Each once. */
  listChanged(since: string | null): Promise<{ devices: readonly ChangedDevice[]; newest: string | null }>;
  close(): Promise<void>;
}
