/** The schedules of an installation: made when they are missing, changed when a setting changed, taken away when it says so. */
import { ScheduleAlreadyRunning, ScheduleNotFoundError, type Client } from '@temporalio/client';
import type { Config } from '../config/index.js';
import { POWER_WATCH_SCHEDULE_ID, RECONCILE_SCHEDULE_ID, WORKFLOW_QUEUE, WORKFLOWS } from '../contracts/messages.js';
import type { PowerWatchInput, PowerWatchStore } from '../contracts/power-watch.js';

interface Wanted {
  readonly id: string;
  readonly everySeconds: number;
  /** Part of the interval by which a start may be late, so that sites do not all begin at once. */
  readonly jitter: number;
  readonly workflowType: string;
  readonly args: unknown[];
  readonly summary: string;
  readonly atOnce: boolean;
}

async function ensureSchedule(client: Client, { id, everySeconds, jitter, workflowType, args, summary, atOnce }: Wanted): Promise<void> {
  const spec = { intervals: [{ every: `${everySeconds}s` as const }], ...(jitter > 0 && { jitter: Math.round(everySeconds * jitter * 1000) }) };
  const action = { type: 'startWorkflow', workflowType, workflowId: id, taskQueue: WORKFLOW_QUEUE, args, staticSummary: summary } as const;
  try {
    await client.schedule.create({ scheduleId: id, spec, action, policies: { overlap: 'SKIP', catchupWindow: '1 minute' }, state: { triggerImmediately: atOnce } });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(id).update((previous) => ({ ...previous, spec, action }));
  }
}

export async function ensureReconcile(client: Client, config: Config): Promise<void> {
  await ensureSchedule(client, {
    id: RECONCILE_SCHEDULE_ID, everySeconds: config.reconcileSeconds, jitter: 0, workflowType: WORKFLOWS.reconcile, args: [],
    summary: 'reads NetBox for what a lost webhook left', atOnce: false,
  });
}

/** Of the site this worker serves. */
export async function ensurePowerWatch(client: Client, config: Config, store: Pick<PowerWatchStore, 'plan'>): Promise<void> {
  const { site, powerWatchSeconds: everySeconds } = config;
  const id = POWER_WATCH_SCHEDULE_ID(site);
  await store.plan(site, everySeconds > 0 ? everySeconds : null);
  if (everySeconds === 0) {
    await client.schedule.getHandle(id).delete().catch((error: unknown) => {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    });
    return;
  }
  const input: PowerWatchInput = { site, atOnce: config.powerWatchAtOnce, jitterSeconds: Math.min(1, everySeconds / 300), settlingSeconds: config.limits.settling };
  await ensureSchedule(client, { id, everySeconds, jitter: 0.1, workflowType: WORKFLOWS.powerWatch, args: [input], summary: `looks at the power of the nodes of ${site}`, atOnce: true });
}
