/** Each phase's function. */
import type { RunPhase } from '../../domain/runs.js';
import type { RunContext } from '../run-context.js';
import { acting } from './acting.js';
import { arming } from './arming.js';
import { awaitingAttestation } from './awaiting-attestation.js';
import { awaitingBoot } from './awaiting-boot.js';
import { confirming } from './confirming.js';
import { disarming } from './disarming.js';
import { planning } from './planning.js';
import { finalPowerOff, poweringOff } from './powering-off.js';
import { poweringOn } from './powering-on.js';
import { rebooting } from './rebooting.js';
import type { PhaseResult } from './result.js';
import { taking } from './taking.js';

export const PHASE_FUNCTIONS: { readonly [phase in RunPhase]: (run: RunContext) => Promise<PhaseResult> } = {
  planning,
  taking,
  'powering-off': poweringOff,
  arming,
  'powering-on': poweringOn,
  'awaiting-boot': awaitingBoot,
  'awaiting-attestation': awaitingAttestation,
  acting,
  disarming,
  rebooting,
  'final-power-off': finalPowerOff,
  confirming,
};
