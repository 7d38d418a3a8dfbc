/** Withdraws the permission: from here on the gate answers "boot your disk". */
import type { RunContext } from '../run-context.js';
import { NEXT, type PhaseResult } from './result.js';

export async function disarming(run: RunContext): Promise<PhaseResult> {
  run.show('the permission to be withdrawn');
  run.releasePermission();
  await run.central(run.limits.disarming, 'withdraw netboot permission').withdrawPermission({ ...run.ref, bootAttempt: run.attempt?.id ?? null });
  return NEXT;
}
