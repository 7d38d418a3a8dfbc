/** How a simulated node misbehaves: each switch is a fault that real machines have. */
import type { DiskSpec } from './disk-file.js';

export interface Behaviours {
  /** The machine freezes (it stays powered) once this action has started and written so many bytes. */
  readonly dieAt?: { readonly action: string; readonly afterBytes?: number };
  /** Its NIC has no link before an operating system is up: it never asks for a boot file. */
  readonly neverBootsNetwork?: boolean;
  /** Its firmware ignores a one-time boot from the network, and its own order: the disk comes first. */
  readonly bootsDiskAlways?: boolean;
  /** Bytes a second of its downloads and of its disks. */
  readonly slowBytesPerSecond?: number;
  /** The netboot system comes up, and the agent in it never does. */
  readonly silentAgent?: boolean;
  /** The system UUID that its agent tells, instead of the one that its BMC tells. */
  readonly wrongUuid?: string;
  /** A disk more than it was declared with. */
  readonly secondDisk?: DiskSpec;
  /** Milliseconds between the end of an action and the agent's learning of it, so that its report comes late. */
  readonly lateReport?: number;
}
