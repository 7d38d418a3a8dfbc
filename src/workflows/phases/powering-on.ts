/** On, and seen on. */
import type { RunContext } from '../run-context.js';
import { changePower } from './change-power.js';
import type { PhaseResult } from './result.js';

export const poweringOn = (run: RunContext): Promise<PhaseResult> => changePower(run, 'on', `cycle-${run.cycle}`);
