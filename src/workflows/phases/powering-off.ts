/** Off, and seen off: whatever ran on the node runs no more. */
import type { RunContext } from '../run-context.js';
import { changePower } from './change-power.js';
import { NEXT, STOPPED, type PhaseResult } from './result.js';

export async function poweringOff(run: RunContext): Promise<PhaseResult> {
  run.forgetBoot();
  run.cycle++;
  return (await changePower(run, 'off', `cycle-${run.cycle}`)) === 'reached' ? NEXT : STOPPED;
}

/** After the last order of a wipe: nothing is left to run. */
export async function finalPowerOff(run: RunContext): Promise<PhaseResult> {
  return (await changePower(run, 'off', `cycle-${run.cycle}-final`)) === 'reached' ? NEXT : STOPPED;
}
