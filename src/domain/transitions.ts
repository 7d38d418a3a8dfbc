/** How a lifecycle moves between its states: one row a move, one sentence a row. An illegal move throws. */
import { isOneOf, WAITING_STATES, type LifecycleState } from './states.js';
import type { RunEnd, RunKind } from './runs.js';

export const LIFECYCLE_EVENTS = [
  'provision started', 'reprovision started', 'wipe started', 'retire started',
  'run done', 'run failed', 'run cancelled harmlessly', 'run cancelled midway', 'run withdrawn',
  'held', 'hold ended', 'queued', 'queue ended', 'attestation quarantined', 'intake approved', 'intake refused',
  'maintenance on', 'maintenance off', 'removal attested', 'device gone', 'adopted', 'declared active',
] as const;
export type LifecycleEvent = (typeof LIFECYCLE_EVENTS)[number];

export interface TransitionRow {
  readonly from: readonly LifecycleState[];
  readonly on: LifecycleEvent;
  /** `previous` goes back to the state that was left for the one in `from`; to `failed` when nobody knows it any more. */
  readonly to: LifecycleState | 'previous';
  readonly because: string;
}

const IDLE = ['planned', 'available', 'active', 'failed'] as const satisfies LifecycleState[];
const RUN_OPEN = ['provisioning', 'wiping', 'retiring'] as const satisfies LifecycleState[];

export const TRANSITIONS: readonly TransitionRow[] = [
  { from: ['planned', 'available', 'failed'], on: 'provision started', to: 'provisioning', because: 'a node that runs nothing may be provisioned' },
  { from: ['active', 'available', 'failed'], on: 'reprovision started', to: 'provisioning', because: 'a reprovision always wipes, so it may replace what runs' },
  { from: ['active', 'available', 'failed'], on: 'wipe started', to: 'wiping', because: 'a wiped node becomes available' },
  { from: [...IDLE], on: 'retire started', to: 'retiring', because: 'a node without an open run may be retired from any state' },
  { from: ['provisioning'], on: 'run done', to: 'active', because: 'the installed system has shown itself' },
  { from: ['wiping'], on: 'run done', to: 'available', because: 'nothing is left on its listed disks' },
  { from: ['retiring'], on: 'run done', to: 'retired', because: 'the BMC was read off twice' },
  { from: [...RUN_OPEN], on: 'run failed', to: 'failed', because: 'the failure has a name and a verb; nothing is armed' },
  { from: [...RUN_OPEN], on: 'run cancelled midway', to: 'failed', because: 'something may be destroyed already, so the former state cannot be claimed' },
  { from: [...RUN_OPEN], on: 'run cancelled harmlessly', to: 'previous', because: 'nothing was destroyed, so the node is what it was' },
  { from: [...RUN_OPEN], on: 'run withdrawn', to: 'previous', because: 'the request was taken back before it was taken' },
  { from: [...IDLE, 'queued', 'quarantined'], on: 'held', to: 'held', because: 'a person has to decide' },
  { from: ['held'], on: 'hold ended', to: 'previous', because: "the reason's verb was given" },
  { from: ['held'], on: 'adopted', to: 'previous', because: 'a person said that store and machine belong together' },
  { from: [...IDLE], on: 'queued', to: 'queued', because: 'the request waits for a limit, an approval or the end of a freeze' },
  { from: ['queued'], on: 'queue ended', to: 'previous', because: 'its turn came, or the field was cleared' },
  { from: ['planned', 'available'], on: 'attestation quarantined', to: 'quarantined', because: 'something attested as this node and does not fit it' },
  { from: ['quarantined'], on: 'intake approved', to: 'previous', because: 'an approver looked at the evidence' },
  { from: ['quarantined'], on: 'intake refused', to: 'previous', because: 'the stranger is kept out; the declared node is what it was' },
  { from: ['planned', 'available', 'failed'], on: 'declared active', to: 'active', because: 'a person set active in NetBox: the node is adopted and not touched' },
  { from: [...IDLE, 'queued', 'held', 'quarantined'], on: 'maintenance on', to: 'maintenance', because: 'a person works on it' },
  { from: ['maintenance'], on: 'maintenance off', to: 'previous', because: 'the person is done' },
  { from: [...IDLE, 'held', 'retiring'], on: 'removal attested', to: 'retired-unproven', because: 'an approver said that the machine is gone, without the word of its BMC' },
  { from: [...IDLE, 'queued', 'held', 'quarantined', 'maintenance'], on: 'device gone', to: 'withdrawn', because: 'NetBox no longer has the device; nothing is destroyed' },
];

/** Thrown when the code asks for a move that the table does not have: a bug, never an operator's doing. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
  constructor(state: LifecycleState, event: LifecycleEvent) {
    super(`no transition from ${state} on ${event}`);
  }
}

/** Where a lifecycle stands, and the state it left for that. */
export interface Place {
  readonly state: LifecycleState;
  /** Null when nothing was left, or when it was gone back to. */
  readonly previous: LifecycleState | null;
}

/** @throws IllegalTransition when the table has no such row */
export function moved({ state, previous }: Place, event: LifecycleEvent): Place {
  const row = TRANSITIONS.find((t) => t.on === event && isOneOf(t.from, state));
  if (!row) throw new IllegalTransition(state, event);
  // A former state that nobody knows any more cannot be claimed.
  if (row.to === 'previous') return { state: previous ?? 'failed', previous: null };
  // From one waiting state to another: what is gone back to is the state before both.
  const waitsOn = isOneOf(WAITING_STATES, state) && isOneOf(WAITING_STATES, row.to);
  return { state: row.to, previous: waitsOn ? previous : state };
}

export const isLegal = (state: LifecycleState, event: LifecycleEvent): boolean => TRANSITIONS.some((t) => t.on === event && isOneOf(t.from, state));

export const STARTED_EVENT: { readonly [kind in RunKind]: LifecycleEvent } = {
  provision: 'provision started',
  reprovision: 'reprovision started',
  wipe: 'wipe started',
  retire: 'retire started',
};

/** Which event is the end of a run? null when the end changes nothing (the run had been closed before). */
export function endEvent(end: RunEnd, destroyed: boolean): LifecycleEvent | null {
  switch (end) {
    case 'done': return 'run done';
    case 'failed': return 'run failed';
    case 'cancelled': return destroyed ? 'run cancelled midway' : 'run cancelled harmlessly';
    case 'withdrawn': return 'run withdrawn';
    case 'run-closed': return null;
  }
}
