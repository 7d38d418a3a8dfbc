/** The activities as workflows call them: time limits, heartbeats and retries in one place. */
import { ActivityCancellationType, proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { CentralActivities, SiteActivities } from '../activities/index.js';
import type { Limits } from '../domain/limits.js';
import { siteQueue } from '../contracts/messages.js';

const RETRY = { initialInterval: '250ms', backoffCoefficient: 2, maximumInterval: '10s' } as const;

/** The server refuses a summary of more than 400 bytes, and the workflow's task with it; a character has at most three in UTF-8. */
const SUMMARY_LENGTH = 120;
export const summarised = (text: string): { summary: string } => ({ summary: text.length <= SUMMARY_LENGTH ? text : `${text.slice(0, SUMMARY_LENGTH - 1)}…` });

/** Asks the store, NetBox or Temporal: short tries, repeated until the whole limit passes. */
export const quick = (limitSeconds: number, trySeconds: number, summary?: string): CentralActivities =>
  proxyActivities<CentralActivities>({ startToCloseTimeout: `${trySeconds}s`, scheduleToCloseTimeout: `${limitSeconds}s`, retry: RETRY, ...(summary && summarised(summary)) });

/**
 * Lives as long as what it mirrors, and is given up only when its heartbeat stops.
 * @param options.endsByItself once cancelled, it has ended only when it says so; the SDK's own default lets go at the request
 */
export const longLived = (options: { heartbeatSeconds: number; summary: string; closeSeconds?: number; endsByItself?: boolean }): CentralActivities =>
  proxyActivities<CentralActivities>({
    startToCloseTimeout: options.closeSeconds ? `${options.closeSeconds}s` : '365 days',
    heartbeatTimeout: `${options.heartbeatSeconds}s`,
    retry: RETRY,
    ...(options.endsByItself && { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED }),
    ...summarised(options.summary),
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
    ...summarised(options.summary),
  };
  return proxyActivities<SiteActivities>(scoped);
}

/** What the page of a lifecycle says of each of its steps. */
const LIFECYCLE_WORDS: { readonly [name in keyof CentralActivities]?: (input: Parameters<CentralActivities[name]>[0]) => string } = {
  recallDevice: () => 'what the store knows of the device',
  lookAtDevice: () => 'read the device in NetBox',
  keepState: ({ state, hold, because }) => `${hold ? 'held' : state}: ${because}`,
  writeStatus: ({ status, state }) => `NetBox: status ${status ?? 'left as it is'}, lifecycle_state ${state}`,
  writeJournal: ({ text }) => `NetBox journal: ${text}`,
  openRun: ({ kind }) => `open a ${kind} run`,
  closeRun: ({ run, outcome }) => `close run ${run}: ${outcome.end}`,
  letNetboxStand: ({ by }) => `the status in NetBox stands, says ${by}`,
  adoptDevice: ({ by }) => `adopted by ${by}`,
};

/** Activities whose summary follows from their input. */
function inWords(options: ActivityOptions): CentralActivities {
  const call = (name: keyof CentralActivities) => (input: never) => {
    const words = LIFECYCLE_WORDS[name] as ((input: never) => string) | undefined;
    const activity = proxyActivities<CentralActivities>({ ...options, ...(words && summarised(words(input))) })[name] as unknown as (input: never) => unknown;
    return activity(input);
  };
  return new Proxy({}, { get: (_, name) => call(name as keyof CentralActivities) }) as CentralActivities;
}

/** A lifecycle's own activities: it never gives up on the store. */
export const ofLifecycle = (trySeconds: number): CentralActivities => inWords({ startToCloseTimeout: `${trySeconds}s`, retry: RETRY });
export const netboxOfLifecycle = (trySeconds: number): CentralActivities => inWords({ startToCloseTimeout: `${trySeconds}s`, scheduleToCloseTimeout: '10 minutes', retry: RETRY });
export const runWatcher = (silenceSeconds: number): CentralActivities =>
  proxyActivities<CentralActivities>({ startToCloseTimeout: '365 days', heartbeatTimeout: `${silenceSeconds}s`, retry: RETRY, summary: 'watches the open run' });
