/** Hands the orders to the agent, one after the other; a stop is honoured between two of them, never in the middle of one. */
import type { RunContext } from '../run-context.js';
import { performOrder } from './order.js';
import { back, failed, NEXT, STOPPED, type PhaseResult } from './result.js';

export async function acting(run: RunContext): Promise<PhaseResult> {
  while (run.nextAction < run.actions.length) {
    await run.holdIfAsked();
    if (run.stop) return STOPPED;
    const action = run.actions[run.nextAction]!;
    // The last reboot is handed out only when permission is withdrawn.
    if (action.action.name === 'reboot' && run.nextAction === run.actions.length - 1) return NEXT;
    const end = await performOrder(run, action);
    if (end.kind === 'stop') return STOPPED;
    if (end.kind === 'failed') return failed(end.failure);
    if (end.kind === 'granted-again') return back('powering-off', `${action.title} is granted again`);
    run.nextAction++;
  }
  return NEXT;
}
