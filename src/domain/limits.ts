/**
 * Every wait's limit, in seconds. A passed limit is an event, a metric and a named failure, never silence.
 * Tests inject shorter ones; a run pins the limits it was started with.
 */
import type { ErrorCode } from './errors.js';

export interface LimitRow {
  readonly seconds: number;
  readonly of: string;
}

export const LIMITS = {
  planning: { seconds: 3600, of: 'planning: fetching and hashing the artefact' },
  taking: { seconds: 600, of: 'taking the request from NetBox' },
  poweringOff: { seconds: 120, of: 'off asked until off read' },
  poweringOn: { seconds: 120, of: 'on asked until on read' },
  settling: { seconds: 180, of: 'silence of an AMT after a power change, added to the power limits' },
  powerPoll: { seconds: 2, of: 'between two power reads' },
  powerReadsApart: { seconds: 5, of: 'between the two off reads of a retirement' },
  bmcRecheck: { seconds: 15, of: 'between looks at the BMC while a run is held for its power' },
  arming: { seconds: 120, of: 'one-time PXE accepted and permission leased' },
  awaitingBoot: { seconds: 600, of: 'power on until our boot request' },
  awaitingAttestation: { seconds: 600, of: 'boot request until the attestation' },
  actionDefault: { seconds: 3600, of: 'an action whose template names no timeout' },
  actionMost: { seconds: 86_400, of: 'the longest timeout a template may name' },
  orderQueued: { seconds: 300, of: 'an order offered until it is taken' },
  agentSilence: { seconds: 60, of: 'the last sign of the agent during a taken order, and the heartbeat of its activity' },
  disarming: { seconds: 60, of: 'withdrawing permission' },
  rebooting: { seconds: 900, of: 'the last reboot taken until it is reported' },
  confirmingSeed: { seconds: 1800, of: 'reboot until the seed is fetched' },
  confirmingOff: { seconds: 600, of: 'retirement: both off reads' },
  permissionLease: { seconds: 300, of: 'a netboot permission without renewal' },
  permissionRenewal: { seconds: 60, of: 'between renewals of a permission' },
  installCode: { seconds: 3600, of: 'an install code until its first use, counted anew from the last reboot' },
  installCodeRepeat: { seconds: 900, of: 'repeats of the first use by the same node' },
  challenge: { seconds: 120, of: 'a challenge until its report' },
  sessionToken: { seconds: 86_400, of: 'a session token of an agent' },
  bmcLock: { seconds: 60, of: 'the lease on one BMC' },
  holdAlert: { seconds: 3600, of: 'a hold until it alerts; a hold itself has no limit' },
  workerPickup: { seconds: 600, of: 'an activity on the queue of a site until a worker takes it' },
  activityTry: { seconds: 30, of: 'one try of an activity that only asks the store or NetBox, and the silence of the one that watches a run' },
  workflowHandover: { seconds: 10, of: "a workflow's next step kept for the worker that has it in mind, before any other may take it" },
} as const satisfies Record<string, LimitRow>;

export type LimitName = keyof typeof LIMITS;
/** Seconds by name. */
export type Limits = { readonly [name in LimitName]: number };

export const DEFAULT_LIMITS = Object.fromEntries(Object.entries(LIMITS).map(([name, { seconds }]) => [name, seconds])) as Limits;

export const withLimits = (overrides: Partial<Limits>): Limits => ({ ...DEFAULT_LIMITS, ...overrides });

/** Failures that say that a limit was passed, and which. */
export const LIMIT_OF: { readonly [code in ErrorCode]?: LimitName } = {
  bmc_still_off: 'poweringOn',
  bmc_still_on: 'poweringOff',
  boot_not_seen: 'awaitingBoot',
  attestation_not_seen: 'awaitingAttestation',
  order_not_taken: 'orderQueued',
  action_timed_out: 'actionDefault',
  agent_lost: 'agentSilence',
  seed_not_fetched: 'confirmingSeed',
  site_without_worker: 'workerPickup',
};

/** Boot attempts before a run fails with `boot_not_seen`. */
export const BOOT_ATTEMPTS = 3;
/** A request to a BMC may take this much of the lease on it: what the lease's holder began has ended before another may begin. */
export const REQUEST_SHARE_OF_LEASE = 0.75;
/** Of that, milliseconds: what a driver may take, which ends before it would be hung up on; and what is left for a call to wait for its turn. */
export function bmcTimes(leaseSeconds: number): { readonly methodMs: number; readonly turnMs: number } {
  const requestMs = Math.floor(leaseSeconds * 1000 * REQUEST_SHARE_OF_LEASE);
  const methodMs = Math.min(20_000, Math.floor(requestMs * 0.95));
  return { methodMs, turnMs: Math.min(8000, requestMs - methodMs) };
}
/** Power requests in one phase before it holds: each is one command, sent only when the effect of the last was not seen. */
export const POWER_REQUESTS = 2;
