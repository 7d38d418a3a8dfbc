/** NetBox, seen from the activities: desired state in, status and journal out; no decisions. */
import type { NetboxStatus } from '../domain/states.js';
import type { Device } from './device.js';

export type NetboxFields = { readonly desired_action?: null; readonly lifecycle_state?: string; readonly lifecycle_url?: string };

/** `conflict`: NetBox refused the If-Match; somebody wrote in between. */
export type WriteResult = { readonly kind: 'written'; readonly device: Device } | { readonly kind: 'conflict' } | { readonly kind: 'gone' };

/**
 * Every method throws MetalflowError `netbox_unreachable` (retryable) when NetBox does not answer or refuses the token, and
 * `device_invalid` when a field cannot be read as what it should be.
 */
export interface NetboxClient {
  /** null when NetBox has no such device. */
  readDevice(deviceId: string): Promise<Device | null>;
  /** With If-Match on the device's ETag. */
  writeDevice(device: Device, change: { status?: NetboxStatus; fields?: NetboxFields; message: string }): Promise<WriteResult>;
  addJournalEntry(deviceId: string, kind: 'info' | 'success' | 'warning' | 'danger', comments: string): Promise<void>;
  /** Ids of devices whose desired_action is set or that changed at or after `since`; of all devices when it is null. */
  listChanged(since: string | null): Promise<{ ids: string[]; newest: string | null }>;
  close(): Promise<void>;
}
