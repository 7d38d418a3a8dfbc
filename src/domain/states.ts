/** Every state of a node's lifecycle, with one sentence each. No code lives here; transitions.ts says how they move. */

/** A NetBox device status as the REST API spells it; `unchanged` leaves what is there. */
export type NetboxStatus = 'planned' | 'inventory' | 'staged' | 'active' | 'decommissioning' | 'failed' | 'offline';

export interface StateRow {
  readonly meaning: string;
  /** The status the lifecycle writes to NetBox when it enters the state; null leaves NetBox alone. */
  readonly netboxStatus: NetboxStatus | null;
  readonly waysOut: string;
}

export const STATES = {
  planned: { meaning: 'declared, never installed; a boot may attest and wait', netboxStatus: 'planned', waysOut: 'attestation (intake), `provision`' },
  available: { meaning: 'wiped or never installed, admitted; waits in the netboot menu or powered off', netboxStatus: 'inventory', waysOut: '`provision`, `retire`' },
  queued: { meaning: 'a request waits for a limit, an approval or the end of a freeze', netboxStatus: null, waysOut: 'its turn, `approve`, the field cleared' },
  provisioning: { meaning: 'a provision or reprovision run is open', netboxStatus: 'staged', waysOut: "the run's end" },
  active: { meaning: 'the installed system has shown itself', netboxStatus: 'active', waysOut: '`reprovision`, `wipe`, `retire`' },
  wiping: { meaning: 'a wipe run is open', netboxStatus: 'staged', waysOut: "the run's end" },
  retiring: { meaning: 'a retire run is open', netboxStatus: 'decommissioning', waysOut: "the run's end" },
  failed: { meaning: 'the last run ended in a named failure; nothing is armed', netboxStatus: 'failed', waysOut: '`retry`, a new request, `retire`' },
  held: { meaning: 'a person has to decide; the reason says what', netboxStatus: null, waysOut: "the reason's verb" },
  quarantined: { meaning: 'something attested as this node and does not fit it', netboxStatus: null, waysOut: '`approve` or `refuse` in intake' },
  maintenance: { meaning: 'a person works on it: no BMC command, no run, no alert', netboxStatus: null, waysOut: '`maintenance off`' },
  retired: { meaning: 'wiped when asked, seen off twice; the lifecycle ends', netboxStatus: 'offline', waysOut: 'none' },
  'retired-unproven': { meaning: "closed by an approver without the BMC's word; the lifecycle ends", netboxStatus: 'offline', waysOut: 'none' },
  withdrawn: { meaning: 'NetBox no longer exports the device; nothing destroyed, nothing armed; the lifecycle ends', netboxStatus: null, waysOut: 'none' },
} as const satisfies Record<string, StateRow>;

export type LifecycleState = keyof typeof STATES;
export const LIFECYCLE_STATES = Object.keys(STATES) as LifecycleState[];

/** States in which a run is open. */
export const RUNNING_STATES = ['provisioning', 'wiping', 'retiring'] as const satisfies LifecycleState[];
/** States in which the lifecycle has ended. */
export const ENDED_STATES = ['retired', 'retired-unproven', 'withdrawn'] as const satisfies LifecycleState[];
/** States in which a request is kept and shown but never started. */
export const WAITING_STATES = ['queued', 'held', 'quarantined', 'maintenance'] as const satisfies LifecycleState[];
/** States in which an unasked boot is given the menu that boots to attest and wait. */
export const WAIT_MENU_STATES = ['planned', 'available'] as const satisfies LifecycleState[];

export const isOneOf = <T extends string>(set: readonly T[], value: string): value is T => (set as readonly string[]).includes(value);
