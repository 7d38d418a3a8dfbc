/** Repairs what a lost webhook left, and restarts lifecycles that are missing. Run by a schedule. */
import { proxyActivities } from '@temporalio/workflow';
import type { CentralActivities } from '../activities/index.js';

const { reconcile } = proxyActivities<CentralActivities>({ startToCloseTimeout: '10 minutes', heartbeatTimeout: '60s', retry: { maximumAttempts: 3 }, summary: 'read NetBox for changes' });

export const netboxReconcile = (): Promise<{ signalled: number; restarted: number }> => reconcile();
