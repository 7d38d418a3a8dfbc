/** The activities as workflows call them: time limits, heartbeats and retries in one place. */
import { proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { CentralActivities, SiteActivities } from '../activities/index.js';
import type { Limits } from '../domain/limits.js';
import { siteQueue } from '../contracts/messages.js';

const RETRY = { initialInterval: '250ms', backoffCoefficient: 2, maximumInterval: '10s' } as const;

/** Asks the store, NetBox or Temporal: short tries, repeated until the whole limit passes. */
export const quick = (limitSeconds: number, trySeconds: number, summary?: string): CentralActivities =>
  proxyActivities<CentralActivities>({ startToCloseTimeout: `${trySeconds}s`, scheduleToCloseTimeout: `${limitSeconds}s`, retry: RETRY, ...(summary && { summary }) });

/** Lives as long as what it mirrors, and is given up only when its heartbeat stops. */
export const longLived = (options: { heartbeatSeconds: number; summary: string; closeSeconds?: number }): CentralActivities =>
  proxyActivities<CentralActivities>({
    startToCloseTimeout: options.closeSeconds ? `${options.closeSeconds}s` : '365 days',
    heartbeatTimeout: `${options.heartbeatSeconds}s`,
    retry: RETRY,
    summary: options.summary,
  });

/** Touches a node: on the queue of its site, where a worker can reach it. */
export function onSite(site: string, limits: Limits, options: { limitSeconds: number | null; summary: string }): SiteActivities {
  const scoped: ActivityOptions = {
    taskQueue: siteQueue(site),
    scheduleToStartTimeout: `${limits.workerPickup}s`,
    ...(options.limitSeconds !== null && { scheduleToCloseTimeout: `${options.limitSeconds + limits.activityTry}s` }),
    startToCloseTimeout: options.limitSeconds !== null ? `${options.limitSeconds + limits.activityTry}s` : '365 days',
    heartbeatTimeout: `${limits.activityTry}s`,
    retry: RETRY,
    summary: options.summary,
  };
  return proxyActivities<SiteActivities>(scoped);
}

/** A lifecycle's own activities: it never gives up on the store. */
export const ofLifecycle = (trySeconds: number): CentralActivities => proxyActivities<CentralActivities>({ startToCloseTimeout: `${trySeconds}s`, retry: RETRY });
export const netboxOfLifecycle = (trySeconds: number): CentralActivities =>
  proxyActivities<CentralActivities>({ startToCloseTimeout: `${trySeconds}s`, scheduleToCloseTimeout: '10 minutes', retry: RETRY });
export const runWatcher = (silenceSeconds: number): CentralActivities =>
  proxyActivities<CentralActivities>({ startToCloseTimeout: '365 days', heartbeatTimeout: `${silenceSeconds}s`, retry: RETRY, summary: 'watches the open run' });
