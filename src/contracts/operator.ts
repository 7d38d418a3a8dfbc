/** The operator plane: roles, views and ports. */
import { z } from 'zod';
import type { Failure } from '../domain/errors.js';
import type { PowerDrift } from '../domain/power-expected.js';
import type { Request, RunEnd, RunKind, RunPhase } from '../domain/runs.js';
import { LIFECYCLE_STATES, type LifecycleState } from '../domain/states.js';
import type { LifecycleView, OperatorVerb, RunView, VerbAnswer, VerbInput } from './messages.js';
import type { RunPlan } from './plan.js';
import type { RefusedDevice } from './store.js';

export const ROLES = ['reader', 'operator', 'approver'] as const;
export type Role = (typeof ROLES)[number];
/** Each role may do what the ones before it may. */
export const roleAllows = (has: Role, needs: Role): boolean => ROLES.indexOf(has) >= ROLES.indexOf(needs);

/** operator-tokens.json of the secrets folder. `sha256` is over the token's text, hex. */
export const OperatorTokens = z.object({
  tokens: z.array(z.object({ name: z.string().min(1).max(100), role: z.enum(ROLES), sha256: z.string().regex(/^[0-9a-f]{64}$/) })).max(1000),
});
export type OperatorTokens = z.infer<typeof OperatorTokens>;
export interface Person {
  readonly name: string;
  readonly role: Role;
}

/** What a webhook says, as far as metalflow cares. */
export interface DeviceHint {
  readonly deviceId: string;
  /** `data.last_updated`, a canonical instant of `domain/instant.ts`: two compare as text. */
  readonly lastUpdated: string;
  /** SHA-256 over the fields metalflow reads; the same digest twice is nothing new. */
  readonly digest: string;
  readonly event: 'created' | 'updated' | 'deleted';
}

/** The store's memory of hooks, so that repeats are dropped at the edge. */
export interface HookLedger {
  /** `stale`: older than the newest one remembered (N3); `repeated`: nothing new of that device. */
  judge(hint: DeviceHint): Promise<'new' | 'repeated' | 'stale'>;
  /** After the signal was delivered; so that a hook whose signal failed is not lost when NetBox sends it again. */
  remember(hint: DeviceHint): Promise<void>;
}

export interface NodeRow {
  readonly deviceId: string;
  readonly name: string;
  readonly site: string;
  readonly nodeClass: string | null;
  readonly state: LifecycleState;
  readonly since: string;
  readonly adopted: boolean;
  readonly proof: 'tpm' | 'unproven' | null;
  readonly power: string;
  /** When the power was last looked at, whatever came of it. */
  readonly powerAt: string | null;
  /** When the BMC last answered. */
  readonly bmcSeenAt: string | null;
  /** Power that does not fit the state. */
  readonly drift: PowerDrift | null;
  readonly openRun: number | null;
  readonly phase: RunPhase | null;
  readonly hold: Failure | null;
}

export interface OrderRow {
  readonly orderId: string;
  readonly title: string;
  readonly action: string;
  readonly state: string;
  readonly grant: number;
  readonly progress: { readonly done: number; readonly total: number; readonly unit: string } | null;
  readonly report: { readonly result: string; readonly message: string; readonly evidence?: Record<string, unknown> } | null;
  /** Where the log of its run is read, when it did not succeed. */
  readonly logs: string | null;
}

export interface RunRow {
  readonly deviceId: string;
  readonly run: number;
  readonly kind: RunKind;
  readonly workflowId: string;
  readonly phase: RunPhase;
  readonly openedAt: string;
  readonly closedAt: string | null;
  readonly end: RunEnd | null;
  readonly failure: Failure | null;
  readonly hold: Failure | null;
  readonly bootAttempts: number;
  readonly orders: readonly OrderRow[];
}

export interface JournalLine {
  readonly at: string;
  readonly run: number | null;
  readonly kind: string;
  readonly text: string;
  readonly by: string | null;
}

export interface EvidenceRow {
  readonly attestationId: string;
  readonly at: string;
  readonly bootAttempt: string | null;
  readonly accepted: boolean;
  readonly reason: string | null;
  readonly proof: 'tpm' | 'unproven';
  readonly bootMac: string;
  readonly neighbour: unknown;
  readonly akThumbprint: string;
}

/** The last report of a boot MAC that no device declares. It is refused; nothing is invented for it. */
export interface StrangerRow {
  readonly at: string;
  readonly bootMac: string;
  /** As the machine says it. */
  readonly systemUuid: string;
  readonly reason: string | null;
  /** Where it is plugged in, as LLDP says. */
  readonly neighbour: unknown;
  readonly sender: string;
}

export const NodesQuery = z.object({ state: z.enum(LIFECYCLE_STATES as [LifecycleState, ...LifecycleState[]]).optional(), site: z.string().optional(), class: z.string().optional() });
export type NodesQuery = z.infer<typeof NodesQuery>;

/** The store, seen from the operator plane. */
export interface NodeDirectory {
  list(query: NodesQuery): Promise<NodeRow[]>;
  /** By device id, or by name: of a live node before one that ended. @throws node_ambiguous */
  find(idOrName: string): Promise<NodeRow | null>;
  runs(deviceId: string): Promise<RunRow[]>;
  /** `<device id>/<number>`. */
  run(deviceId: string, run: number): Promise<RunRow | null>;
  journal(deviceId: string, limit: number): Promise<JournalLine[]>;
  evidence(deviceId: string): Promise<EvidenceRow[]>;
  /** Devices of NetBox that metalflow cannot begin with; no nodes. */
  refused(): Promise<RefusedDevice[]>;
  /** Newest first; a few of the last. */
  strangers(): Promise<StrangerRow[]>;
  /** One line of who did what. */
  recordAudit(line: { at: string; by: string; role: string; what: string; deviceId: string | null; result: string }): Promise<void>;
  /** Throws `store_unavailable`. */
  ping(): Promise<void>;
}

/** Temporal, seen from the operator plane. */
export interface NodeWorkflows {
  lifecycle(deviceId: string): Promise<LifecycleView | null>;
  run(deviceId: string, run: number): Promise<RunView | null>;
  /** To the open run when it takes the verb, else to the lifecycle. @throws verb_refused with the validator's reason, node_not_found */
  say(deviceId: string, verb: OperatorVerb, input: Omit<VerbInput, 'runId'>): Promise<VerbAnswer>;
  signalLifecycle(deviceId: string, name: string, payload: unknown): Promise<void>;
  ping(): Promise<void>;
}

/** What a run would do; does nothing. */
export interface RunPlanner {
  /**
   * @returns `begins`: when, in words; `destroys`: a line for each thing that would be lost
   * @throws request_refused where it would not begin, and the failures of planning: class_unknown, template_invalid, device_invalid …
   */
  plan(deviceId: string, kind: RunKind): Promise<{ begins: string; plan: RunPlan; phases: readonly RunPhase[]; destroys: string[]; notes: string[] }>;
}

/** NetBox, seen from the operator plane: a request is the field in NetBox, nothing else. */
export interface NetboxRequests {
  /**
   * Sets desired_action in the name of a person; null takes it back. Asking for what is asked already changes nothing.
   * @throws request_pending when the field asks for something else, device_not_found, device_invalid, netbox_conflict, netbox_unreachable
   */
  request(deviceId: string, action: Request | null, by: string): Promise<void>;
}

/** One thing a role needs before it can do its work. */
export interface ReadyCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly why?: string;
}

export const VerbBody = z.strictObject({
  reason: z.string().max(1000).optional(),
  done: z.boolean().optional(),
  on: z.boolean().optional(),
  attestRemoved: z.boolean().optional(),
});
