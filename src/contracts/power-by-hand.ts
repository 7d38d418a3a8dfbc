/** What a person asks of one BMC from the command line, and what came of it. */
import type { BmcProblemCode, PowerWord } from '../domain/power.js';
import type { BmcFinding, BmcIdentity } from './bmc.js';
import type { BMC_TYPES } from './device.js';

export type BmcType = (typeof BMC_TYPES)[number];

/** A device of NetBox by name or id; or, with a type, an address. */
export interface BmcTarget {
  readonly name: string;
  readonly type: BmcType | null;
  readonly port: number | null;
  /** SHA-256 of its certificate, hex. */
  readonly fingerprint: string | null;
}

/** A command of a person: who, why, and whether a run that is open may be disturbed. */
export interface HandOrder {
  /** null: the user of this machine's session. */
  readonly by: string | null;
  readonly reason: string | null;
  readonly duringRun: boolean;
}

export type BmcAsk =
  | { readonly what: 'status' | 'doctor' }
  | ({ readonly what: 'on' | 'off' } & HandOrder)
  /** `reboot`: off and on again, so that the armed boot is used. */
  | ({ readonly what: 'pxe'; readonly reboot: boolean } & HandOrder);

export interface HandSubject {
  /** null for a bare address. */
  readonly device: { readonly id: string; readonly name: string; readonly openRun: number | null } | null;
  readonly bmc: { readonly type: BmcType; readonly address: string };
}

/** Of the machine behind the BMC against `system_uuid` of the device. */
export type MachineSeen =
  | { readonly kind: 'same' | 'not-declared'; readonly uuid: string }
  | { readonly kind: 'differs'; readonly uuid: string; readonly expected: string }
  /** `code` null: the BMC answers, and does not say. */
  | { readonly kind: 'unread'; readonly code: BmcProblemCode | null; readonly why: string };

export interface BmcStatus extends HandSubject {
  readonly power: PowerWord;
  /** Why the power is not known; null when it is. */
  readonly why: string | null;
  readonly machine: MachineSeen;
  readonly identity: BmcIdentity | null;
}

export interface BmcDone extends HandSubject {
  readonly power: PowerWord;
  /** Power commands that were sent, in order; none when there was nothing to do. */
  readonly commands: readonly ('on' | 'off')[];
  /** One boot from the network is armed, or was used. */
  readonly armed: boolean;
}

/** One look of `metalflow bmc doctor`. `unknown` does not count as bad. */
export interface BmcCheck {
  readonly name: string;
  readonly result: BmcFinding['result'];
  readonly found: string;
  readonly hint?: string;
}

export interface BmcExamined extends HandSubject {
  readonly checks: readonly BmcCheck[];
}

export type BmcReport = ({ readonly what: 'status' } & BmcStatus) | ({ readonly what: 'on' | 'off' | 'pxe' } & BmcDone) | ({ readonly what: 'doctor' } & BmcExamined);
