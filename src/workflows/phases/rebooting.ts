/** Hands out the last reboot. Taking it is not yet being done: the confirming phase waits for the node to be seen. */
import type { RunContext } from '../run-context.js';
import { performOrder } from './order.js';
import { back, failed, NEXT, STOPPED, type PhaseResult } from './result.js';

export async function rebooting(run: RunContext): Promise<PhaseResult> {
  const action = run.actions[run.nextAction];
  if (!action) return NEXT;
  const end = await performOrder(run, { ...action, timeoutSeconds: Math.min(action.timeoutSeconds, run.limits.rebooting) });
  switch (end.kind) {
    case 'failed': return failed(end.failure);
    case 'granted-again': return back('powering-off', `${action.title} is granted again`);
    case 'succeeded': run.nextAction++; return NEXT;
    case 'stop': return STOPPED;
  }
}
