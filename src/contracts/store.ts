/** The store, seen from the activities and the worker's loops. Every method may throw `store_unavailable`. */
import type { Failure } from '../domain/errors.js';
import type { Disk } from '../domain/disks.js';
import type { PowerWord } from '../domain/power.js';
import type { Request, RunKind, RunPhase } from '../domain/runs.js';
import type { LifecycleState } from '../domain/states.js';
import type { CommandResult } from './bmc.js';
import type { BmcAddress, Device } from './device.js';
import type { RunInput, RunOutcome } from './messages.js';
import type { AgentAction, OrderReport } from './order.js';
import type { RunPlan } from './plan.js';

/** Who asks for an effect: the run, and the Temporal run id that speaks for it. */
export interface FenceRef {
  readonly deviceId: string;
  readonly run: number;
  readonly workflowId: string;
  readonly temporalRunId: string;
}

/**
 * The fence: one Temporal run at a time speaks for a run.
 * Every method throws `run_closed`, `run_stale` or `installation_mismatch` when the ref may not act.
 */
export interface Fence {
  /** `taken-over`: the run was reset and this is its new Temporal run; open orders, tokens, attempts and permission are void. */
  enter(ref: FenceRef): Promise<'held' | 'taken-over'>;
}

export interface DeviceRecord {
  readonly deviceId: string;
  readonly name: string;
  readonly site: string;
  readonly nodeClass: string | null;
  readonly state: LifecycleState;
  readonly stateSince: string;
  readonly previousState: LifecycleState | null;
  readonly hold: Failure | null;
  readonly adopted: boolean;
  readonly netboxStatus: string | null;
  readonly nextRequest: Request | null;
  readonly openRun: { readonly run: number; readonly kind: RunKind; readonly workflowId: string } | null;
  readonly lastRun: { readonly run: number; readonly kind: RunKind; readonly outcome: RunOutcome; readonly at: string } | null;
  readonly approvedUuid: string | null;
  readonly power: PowerWord;
}

export interface DeviceStore {
  find(deviceId: string): Promise<DeviceRecord | null>;
  /** Registers or refreshes what NetBox says; never touches the state of a known device. */
  register(device: Device, initial: { state: LifecycleState; adopted: boolean }, ofClass?: { allowUnproven: boolean }): Promise<DeviceRecord>;
  /** Whether this is what NetBox said when the device was registered last. */
  isAsRegistered(device: Device): Promise<boolean>;
  /** So many of the devices that have not ended, or are refused, each time the next ones, for ever round. */
  nextToCompare(count: number): Promise<string[]>;
  setState(deviceId: string, change: { state: LifecycleState; previousState: LifecycleState | null; hold: Failure | null; because: string; nextRequest?: Request | null; adopted?: boolean }): Promise<void>;
  /** What was written or read last; null when what NetBox has is a person's, and not ours to defend. */
  setNetboxStatus(deviceId: string, status: string | null): Promise<void>;
  setPower(deviceId: string, power: PowerWord): Promise<void>;
  /** Devices, those that ended left out, whose BMC has one of these hosts; several may share one, each at its own port. */
  atBmc(hosts: readonly string[]): Promise<{ readonly name: string; readonly bmc: BmcAddress }[]>;
  approveUuid(deviceId: string, uuid: string, by: string): Promise<void>;
  /** Devices whose run is open, that are held, or that hold a lease: a lifecycle has to be running for each. */
  withOpenWork(): Promise<string[]>;
  journal(deviceId: string, run: number | null, kind: 'run' | 'phase' | 'hold' | 'power' | 'order' | 'verb' | 'state' | 'netbox' | 'attestation', text: string, by?: string): Promise<void>;
  /** The newest `last_updated` the reconcile has read. */
  reconcileMark(): Promise<string | null>;
  setReconcileMark(mark: string): Promise<void>;
}

/** A device that NetBox has and metalflow cannot begin with. It is no node; people ask for it all the same. */
export interface RefusedDevice {
  readonly deviceId: string;
  /** Empty where NetBox has none. */
  readonly name: string;
  readonly failure: Failure;
  readonly since: string;
  /** People were told, in NetBox's journal. */
  readonly isTold: boolean;
}

export interface RefusedDevices {
  /** The same failure again changes nothing. */
  keep(deviceId: string, name: string, why: Failure): Promise<void>;
  find(deviceId: string): Promise<RefusedDevice | null>;
  told(deviceId: string): Promise<void>;
  /** It is a node now, or gone, or asks for nothing any more. */
  forget(deviceId: string): Promise<void>;
}

export interface InstallationStatus {
  readonly id: string;
  readonly status: 'pending' | 'confirmed' | 'mismatch';
  readonly why: string | null;
}

export interface InstallationStore {
  read(): Promise<InstallationStatus | null>;
  /** Written before Temporal is told, so that a crash in between is not a mismatch. */
  begin(id: string): Promise<void>;
  confirm(): Promise<void>;
  /** Voids permissions, tokens, codes and open orders, and holds every device, in one transaction. */
  mismatch(why: string): Promise<void>;
  /** A person said that they belong together: takes the id Temporal has. */
  relink(id: string): Promise<void>;
  /** Null when the device may be acted on, else why not. */
  distrust(deviceId: string): Promise<string | null>;
  adopt(deviceId: string, by: string): Promise<void>;
  /** Temporal knows more of this device than the store does: the store is older than it. */
  distrustDevice(deviceId: string, why: string): Promise<void>;
}

/** What a run is begun with, besides its device and kind. Kept, so that a run that was opened and never begun begins the same. */
export type BegunWith = Pick<RunInput, 'asked' | 'intake'>;

export interface RunStore {
  /** The open run when there is one, else a new one with the next number. */
  open(deviceId: string, kind: RunKind, begun: BegunWith): Promise<{ run: number; kind: RunKind; workflowId: string; begun: BegunWith; isNew: boolean }>;
  nextNumber(deviceId: string): Promise<number>;
  /** Numbers up to, and without, `next` are spent: Temporal knows them. */
  skipTo(deviceId: string, next: number): Promise<void>;
  enterPhase(ref: FenceRef, phase: RunPhase, note: string): Promise<void>;
  setHold(ref: FenceRef, hold: Failure | null): Promise<void>;
  pinPlan(ref: FenceRef, plan: RunPlan): Promise<void>;
  plan(deviceId: string, run: number): Promise<RunPlan | null>;
  /** `cleared`: the field was cleared by this run, which must never read it again. */
  taking(deviceId: string, run: number): Promise<'not-taken' | 'marked' | 'cleared'>;
  markTaken(ref: FenceRef): Promise<void>;
  markCleared(ref: FenceRef): Promise<void>;
  /** What this very Temporal run, or its lifecycle, wrote as the run's end; null while the run is open, and for any other Temporal run. */
  standing(ref: FenceRef): Promise<RunOutcome | null>;
  /** First writer wins; withdraws permission, cancels orders, revokes tokens. Returns the outcome that stands. */
  close(deviceId: string, run: number, outcome: RunOutcome, ref: FenceRef | null): Promise<RunOutcome>;
}

export interface AttemptStore {
  /** Closes the run's former attempts and revokes their tokens. */
  open(ref: FenceRef): Promise<{ bootAttempt: string; number: number }>;
  /** The accepted attestation of an open attempt of this fence. @throws attempt_superseded */
  attested(ref: FenceRef, bootAttempt: string): Promise<{ attestationId: string; disks: Disk[]; proof: 'tpm' | 'unproven'; akThumbprint: string } | null>;
  bootSeen(ref: FenceRef, bootAttempt: string): Promise<boolean>;
  /** @throws attempt_superseded */
  assertOpen(ref: FenceRef, bootAttempt: string): Promise<void>;
  /**
   * The boot in which the node attested before a run was asked for becomes an attempt of this run. Its token is revoked, so
   * that the agent attests again, over a new nonce, and gets the run's token and code.
   * @throws attempt_superseded too when the run had a boot before it was reset: what the node did in that boot it must not do again
   */
  adoptIntake(ref: FenceRef, attestationId: string): Promise<{ bootAttempt: string; number: number }>;
}

export interface PermissionStore {
  /** Leases or renews. @throws attempt_superseded */
  lease(ref: FenceRef, bootAttempt: string, seconds: number): Promise<void>;
  withdraw(ref: FenceRef): Promise<void>;
}

export type OrderResult =
  | { readonly kind: 'reported'; readonly report: OrderReport }
  | { readonly kind: 'unknown'; readonly since: string }
  | { readonly kind: 'timed-out'; readonly seconds: number }
  | { readonly kind: 'not-taken'; readonly seconds: number }
  | { readonly kind: 'cancelled'; readonly why: string };

export interface OrderLedger {
  /**
   * Idempotent: the same (run, title, attempt) is the same order. A later attempt gets a new grant.
   * @param grantUnknown a person said `retry` on the unknown order: grant it again in the same attempt
   * A former grant whose outcome is unknown is the same order too, until a person says `retry`: its result says so.
   */
  post(
    ref: FenceRef,
    input: { bootAttempt: string; title: string; action: AgentAction; destructive: boolean; timeoutSeconds: number; queueSeconds: number; grantUnknown: string | null },
  ): Promise<{ orderId: string; grant: number }>;
  /** The result when there is one; else remembers the token to complete. @throws attempt_superseded for an order from before a reset */
  attach(ref: FenceRef, orderId: string, taskToken: string): Promise<OrderResult | null>;
  /** The newest result of an order; null while it is open. */
  result(deviceId: string, orderId: string): Promise<OrderResult | null>;
  /** A person said that the unknown order was done. */
  resolveAsDone(ref: FenceRef, orderId: string, by: string): Promise<void>;
  cancelOpen(ref: FenceRef, why: string): Promise<void>;
  /** Passes deadlines: not taken, timed out, silent. Called by the worker's keeper. */
  passDeadlines(agentSilenceSeconds: number): Promise<number>;
  /** Orders whose activity wants a heartbeat: no heartbeat since `before`. Marks them as heartbeaten. */
  wantHeartbeat(before: Date): Promise<{ orderId: string; taskToken: string; withheld: boolean; details: unknown }[]>;
  /** Its activity was paused, or let go, in Temporal: a paused order is not offered. What was taken goes on: a half wipe is worse than a whole one. */
  withhold(orderId: string, withheld: boolean): Promise<void>;
  /** Temporal no longer wants the order (cancelled or reset): the agent is told at its next progress. */
  cancelByTemporal(orderId: string): Promise<void>;
}

/** Who may talk to a BMC, and for how long at a time. */
export interface BmcLeaseTerms {
  readonly bmc: string;
  readonly holder: string;
  readonly seconds: number;
}

export interface PowerStore {
  /**
   * Writes the intent before the wire, and renews the lease under which its command goes out; both or neither.
   * `again`: an earlier try wrote it; `answer` is what the BMC said, null when the try died before it knew.
   * @param lease null for a node without a BMC
   * @throws as the fence
   */
  intend(ref: FenceRef, intent: { id: string; command: string }, lease: BmcLeaseTerms | null): Promise<
    { kind: 'first' } | { kind: 'again'; answer: CommandResult | null; writtenAt: string } | { kind: 'lease-lost' }
  >;
  answered(id: string, answer: CommandResult): Promise<void>;
  /** Lease of one BMC. */
  lock(bmc: string, holder: string, seconds: number): Promise<boolean>;
  unlock(bmc: string, holder: string): Promise<void>;
  /** When a power command last went to the BMC of this device; null when never. */
  lastChangeAt(deviceId: string): Promise<string | null>;
}

/** What a person's hand writes down before the wire. */
export interface HandIntents {
  /**
   * Writes a person's command, outside of the runs, and renews the lease under which it goes out; both or neither. Its line in the journal is written with it. `run-open`: a run has been opened that
   * may not be disturbed.
   */
  intendByHand(
    deviceId: string, intent: { id: string; command: string; text: string; by: string; duringRun: boolean }, lease: BmcLeaseTerms,
  ): Promise<{ kind: 'written' } | { kind: 'lease-lost' } | { kind: 'run-open'; run: number }>;
}

export interface Stores {
  readonly fence: Fence;
  readonly devices: DeviceStore;
  readonly refused: RefusedDevices;
  readonly installation: InstallationStore;
  readonly runs: RunStore;
  readonly attempts: AttemptStore;
  readonly permissions: PermissionStore;
  readonly orders: OrderLedger;
  readonly power: PowerStore;
}
