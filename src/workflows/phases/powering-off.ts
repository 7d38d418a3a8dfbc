/** Off, and seen off: whatever ran on the node runs no more. */
import type { RunContext } from '../run-context.js';
import { changePower } from './change-power.js';
import type { PhaseResult } from './result.js';

export async function poweringOff(run: RunContext): Promise<PhaseResult> {
  run.forgetBoot();
  run.cycle++;
  return changePower(run, 'off', `cycle-${run.cycle}`);
}

/** After the last order of a wipe: nothing is left to run. */
export const finalPowerOff = (run: RunContext): Promise<PhaseResult> => changePower(run, 'off', `cycle-${run.cycle}-final`);
