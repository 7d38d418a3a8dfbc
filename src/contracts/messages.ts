/** Everything that is said to and by workflows: ids, queues, signals, updates, queries, search attributes. */
import { z } from 'zod';
import { REQUESTS, type RunEnd, type RunKind, type RunPhase } from '../domain/runs.js';
import type { Failure } from '../domain/errors.js';
import type { LifecycleState } from '../domain/states.js';
import type { Limits } from '../domain/limits.js';
import type { PowerWord } from '../domain/power.js';
import { PowerTold } from './power-watch.js';
import { OpaqueId, RunNumber } from './primitives.js';

// ---- ids and queues -------------------------------------------------------------------------------------------------
export const WORKFLOW_QUEUE = 'metalflow';
/** Activities that touch a node run where the node can be reached. */
export const siteQueue = (site: string): string => `metalflow-${site}`;
export const lifecycleId = (deviceId: string): string => `node/${deviceId}`;
export const runWorkflowId = (deviceId: string, run: number): string => `node/${deviceId}/run/${run}`;
export const INSTALLATION_WORKFLOW_ID = 'metalflow/installation';
export const RECONCILE_SCHEDULE_ID = 'metalflow/netbox-reconcile';

export const POWER_WATCH_SCHEDULE_ID = (site: string): string => `power-watch/${site}`;

export const WORKFLOWS = { lifecycle: 'nodeLifecycle', run: 'nodeRun', installation: 'installation', reconcile: 'netboxReconcile', powerWatch: 'powerWatch' } as const;

// ---- signals --------------------------------------------------------------------------------------------------------
// Anyone can send anything with the temporal program, and a signal has no validator: handlers parse, and ignore with a
// logged reason what does not fit.

/** NetBox has something new of the device. A hint: the device is read again. */
export const DeviceChanged = z.object({ source: z.enum(['webhook', 'reconcile', 'operator', 'temporal']).default('temporal') });
/** The gate served our boot file in this attempt. */
export const BootSeen = z.object({ bootAttempt: OpaqueId });
/** A verified, or refused, attestation of this attempt; `bootAttempt` is null for an intake. */
export const Attested = z.object({ bootAttempt: OpaqueId.nullable(), attestationId: OpaqueId, accepted: z.boolean(), reason: z.string().max(200).nullable() });
/** The agent asked for orders in this attempt. */
export const AgentSeen = z.object({ bootAttempt: OpaqueId });
/** The installed system fetched its seed with the install code, or phoned home. */
export const SystemSeen = z.object({ run: RunNumber, how: z.enum(['seed-fetched', 'phone-home']) });
/** A report came for an order whose outcome had been unknown. */
export const OrderReported = z.object({ orderId: OpaqueId });
/** The lifecycle asks its run to stop at the next safe point. */
export const StopAtSafePoint = z.object({ by: z.string().max(200), request: z.enum(REQUESTS).nullable() });
/** The request that a run was asked to stop for was taken back; a stop that was not honoured yet is forgotten. */
export const StopTakenBack = z.object({ request: z.enum(REQUESTS) });

export const SIGNALS = {
  deviceChanged: { name: 'deviceChanged', schema: DeviceChanged },
  bootSeen: { name: 'bootSeen', schema: BootSeen },
  attested: { name: 'attested', schema: Attested },
  agentSeen: { name: 'agentSeen', schema: AgentSeen },
  systemSeen: { name: 'systemSeen', schema: SystemSeen },
  orderReported: { name: 'orderReported', schema: OrderReported },
  stopAtSafePoint: { name: 'stopAtSafePoint', schema: StopAtSafePoint },
  stopTakenBack: { name: 'stopTakenBack', schema: StopTakenBack },
  powerSeen: { name: 'powerSeen', schema: PowerTold },
} as const;

// ---- updates (operator verbs) -------------------------------------------------------------------------------------------
/** Said by a person. `runId` is the Temporal run id it is meant for; a run refuses another's (reset applies updates again). */
export const VerbInput = z.object({
  by: z.string().min(1).max(200),
  reason: z.string().max(1000).optional(),
  runId: z.string().max(100).optional(),
  /** `resume --done`: the unknown order was done. */
  done: z.boolean().optional(),
  /** `maintenance`: on or off. */
  on: z.boolean().optional(),
  /** `retire --attest-removed`. */
  attestRemoved: z.boolean().optional(),
});
export type VerbInput = z.infer<typeof VerbInput>;

export const VERBS = ['hold', 'resume', 'cancel', 'retry', 'approve', 'adopt', 'maintenance'] as const;
export type OperatorVerb = (typeof VERBS)[number];
/** Updates a run takes itself; the rest go to the lifecycle. */
export const RUN_VERBS = ['hold', 'resume', 'cancel', 'retry', 'approve'] as const satisfies OperatorVerb[];

/** Why a lifecycle that has only begun refuses every verb; said again a moment later, it is judged. */
export const TAKING_UP = 'the lifecycle is taking the node up; say it again in a moment';

/** What an update answers. */
export interface VerbAnswer {
  readonly accepted: true;
  readonly text: string;
}

// ---- the query `state` --------------------------------------------------------------------------------------------------
export interface HoldView extends Failure {
  readonly since: string;
  readonly verb: string;
}

export interface RunView {
  readonly deviceId: string;
  readonly node: string;
  readonly run: number;
  readonly kind: RunKind;
  readonly phase: RunPhase;
  readonly since: string;
  readonly waitsFor: string;
  readonly hold: HoldView | null;
  readonly bootAttempt: string | null;
  readonly bootAttempts: number;
  readonly power: PowerWord;
  readonly proof: 'tpm' | 'unproven' | null;
  readonly disk: string | null;
  readonly orders: readonly { readonly title: string; readonly state: string; readonly orderId: string }[];
  readonly stopAsked: string | null;
  readonly fence: string | null;
}

export interface LifecycleView {
  readonly deviceId: string;
  readonly node: string;
  readonly state: LifecycleState;
  readonly since: string;
  readonly adopted: boolean;
  readonly nodeClass: string | null;
  readonly site: string;
  readonly openRun: { readonly run: number; readonly kind: RunKind; readonly workflowId: string } | null;
  readonly lastRun: { readonly run: number; readonly kind: RunKind; readonly end: RunEnd; readonly failure: Failure | null; readonly at: string } | null;
  readonly nextRequest: string | null;
  /** As it was last observed; null before that. */
  readonly power: PowerWord | null;
  readonly hold: HoldView | null;
  readonly waitsFor: string;
}

export const STATE_QUERY = 'state';

// ---- inputs and results of workflows ---------------------------------------------------------------------------------------
export interface LifecycleInput {
  readonly deviceId: string;
  /** Carried over continue-as-new; absent at a first start. */
  readonly carried?: LifecycleCarried;
}

/** What survives continue-as-new. The store holds the rest. */
export interface LifecycleCarried {
  readonly pendingWake: boolean;
  readonly pendingAttestations: readonly z.infer<typeof Attested>[];
  /** Of the refusal or oddity that was journalled last, so that it is told once. */
  readonly told: string | null;
  /** That the node attested and waits was journalled. Absent from histories begun before it was carried. */
  readonly waitTold?: boolean;
  /** What was shown last: it stands until the store is recalled. Absent from histories begun before it was carried. */
  readonly shown?: LifecycleView;
}

export interface RunInput {
  readonly deviceId: string;
  readonly nodeName: string;
  readonly site: string;
  readonly run: number;
  readonly kind: RunKind;
  readonly limits: Limits;
  /** Who asked: the field in NetBox (which the run takes), or a person's `retry` of the last run. */
  readonly asked: { readonly how: 'netbox' } | { readonly how: 'retry'; readonly by: string };
  /** The attestation with which the node waits already; such a run skips the power cycle and has the node attest again. */
  readonly intake: { readonly attestationId: string } | null;
}

export interface RunOutcome {
  readonly end: RunEnd;
  readonly failure: Failure | null;
  /** Whether a destructive order was taken. */
  readonly destroyed: boolean;
  readonly by?: string;
  /** A person asked, in the run's last hold, for a new run of the same kind. */
  readonly retryBy?: string;
  /** A retirement that an approver closed without the BMC's word. */
  readonly unproven?: boolean;
}

/** A run that has ended, and whose end is not in NetBox yet. */
export interface EndedRun {
  readonly run: number;
  readonly kind: RunKind;
}

/** What the watcher of a run saw in the end. */
export type WatchedEnd = { readonly kind: 'ended'; readonly outcome: RunOutcome } | { readonly kind: 'terminated' } | { readonly kind: 'never-started' };


// ---- search attributes (all Keyword: a SQL store has ten of them) --------------------------------------------------------
export const SEARCH_ATTRIBUTES = {
  node: 'MetalflowNode',
  device: 'MetalflowDevice',
  state: 'MetalflowState',
  phase: 'MetalflowPhase',
  runKind: 'MetalflowRunKind',
  class: 'MetalflowClass',
  site: 'MetalflowSite',
  power: 'MetalflowPower',
} as const;
