/** One walk over the power of a site's nodes. Run by a schedule; a walk that takes longer than its interval is not joined by another. */
import { proxyActivities } from '@temporalio/workflow';
import type { SiteActivities } from '../activities/index.js';
import { siteQueue } from '../contracts/messages.js';
import type { PowerWalk, PowerWatchInput } from '../contracts/power-watch.js';

export function powerWatch(input: PowerWatchInput): Promise<PowerWalk> {
  const { watchPower } = proxyActivities<SiteActivities>({
    taskQueue: siteQueue(input.site),
    // Of a site that no worker serves nothing is known, and the next walk says so again.
    scheduleToStartTimeout: '5 minutes',
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: '2 minutes',
    retry: { maximumAttempts: 2 },
    summary: `power of the nodes of ${input.site}`,
  });
  return watchPower(input);
}
