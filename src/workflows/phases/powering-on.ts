/** On, and seen on. */
import type { RunContext } from '../run-context.js';
import { changePower } from './change-power.js';
import { NEXT, STOPPED, type PhaseResult } from './result.js';

export async function poweringOn(run: RunContext): Promise<PhaseResult> {
  return (await changePower(run, 'on', `cycle-${run.cycle}`)) === 'reached' ? NEXT : STOPPED;
}
