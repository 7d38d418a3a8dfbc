/** One provision, reprovision, wipe or retire of a node: phases in order, each seen done, until a named end. */
import { CancellationScope, isCancellation, log, patched } from '@temporalio/workflow';
import { failure, type Failure } from '../domain/errors.js';
import { phasesOf, PHASES_OF, type RunPhase } from '../domain/runs.js';
import type { RunInput, RunOutcome } from '../contracts/messages.js';
import { codeOf, failureOf, fenceLossOf } from './failures.js';
import { PHASE_FUNCTIONS } from './phases/index.js';
import { sureOfMachine } from './phases/machine.js';
import { STOPPED, type PhaseResult } from './phases/result.js';
import { listenForRun } from './run-handlers.js';
import { RunContext } from './run-context.js';

/** Resets, and unknown errors, after which a run gives up trying to go on. */
const MOST_SETBACKS = 10;
/** Runs of before that ended without the store's word were not shown as ended. */
const END_SHOWN = 'every-end-is-shown';
/** From these phases on, a reset leads back through power off. */
const NEEDS_BOOT: readonly RunPhase[] = ['arming', 'powering-on', 'awaiting-boot', 'awaiting-attestation', 'acting', 'disarming', 'rebooting'];

/** A phase's result once a stop was turned into the run's end. */
type GoneThrough = Exclude<PhaseResult, { kind: 'stopped' }>;

export async function nodeRun(input: RunInput): Promise<RunOutcome> {
  const run = new RunContext(input);
  listenForRun(run);
  let outcome: RunOutcome;
  try {
    outcome = await goThroughPhases(run);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    // `temporal workflow cancel`: what was armed is disarmed all the same.
    outcome = await CancellationScope.nonCancellable(() => finish(run, { end: 'cancelled', failure: failure('run_cancelled', { by: 'temporal' }), by: 'temporal' }));
  }
  if (!run.outcome && patched(END_SHOWN)) run.end(outcome);
  await CancellationScope.nonCancellable(() => run.tidyUp());
  return outcome;
}

async function goThroughPhases(run: RunContext): Promise<RunOutcome> {
  let phase: RunPhase = 'planning';
  let note = '';
  let setbacks = 0;
  for (;;) {
    let result: GoneThrough;
    try {
      result = await goThrough(run, phase, note);
    } catch (error) {
      if (isCancellation(error)) throw error;
      const loss = fenceLossOf(error);
      if (loss === 'run-closed' || loss === 'stale') return { end: 'run-closed', failure: failureOf(error), destroyed: false };
      // Nothing of the store may be believed or written; the lifecycle is held until a person adopts, and closes the run.
      if (codeOf(error) === 'installation_mismatch') return { end: 'failed', failure: failureOf(error), destroyed: run.destroyed };
      if (++setbacks > MOST_SETBACKS) result = { kind: 'failed', failure: run.failureOf(error) };
      else if (loss === 'superseded') result = { kind: 'back', to: 'powering-off', because: 'the run was reset, or its boot attempt was closed' };
      else result = await holdFor(run, phase, run.failureOf(error));
    }
    note = '';
    switch (result.kind) {
      case 'ended':
        return finish(run, result.outcome);
      case 'failed':
        return finish(run, { end: 'failed', failure: result.failure });
      case 'back':
        phase = result.to;
        note = result.because;
        break;
      case 'next': {
        const following = nextPhase(run, phase);
        if (!following) return finish(run, { end: 'done', failure: null });
        phase = following;
      }
    }
  }
}

/** One phase, entered and done; or the stop or hold that was asked for, honoured at this safe point. */
async function goThrough(run: RunContext, phase: RunPhase, note: string): Promise<GoneThrough> {
  run.phase = phase;
  run.since = Date.now();
  if ((await enter(run, phase, note)) === 'reset' && NEEDS_BOOT.includes(phase)) return backFrom(phase, 'the run was reset');
  // A stop ended a hold and was taken back: what the hold was for may have left the phase half done.
  if (note === STOPPING && !run.stop && NEEDS_BOOT.includes(phase)) return backFrom(phase, TAKEN_BACK);
  await run.holdIfAsked();
  const result = run.stop ? STOPPED : await goOn(run, phase);
  if (result.kind !== 'stopped') return result;
  // Reset applies signals again: whether this stop was meant for the present run, the fence knows.
  const entered = await enter(run, phase, 'to stop');
  if (!run.stop) return backFrom(phase, entered === 'reset' ? 'the run was reset' : TAKEN_BACK);
  const { by, request, removed } = run.stop;
  // It reads `retired, unproven` for ever.
  if (removed) return { kind: 'ended', outcome: { end: 'done', failure: removed, unproven: true, by } };
  return { kind: 'ended', outcome: { end: 'cancelled', failure: failure('run_cancelled', { by: request ? `${by} for ${request}` : by }), by } };
}

/** Nothing is asked of a machine that NetBox named after a hold, before it was compared. */
const goOn = async (run: RunContext, phase: RunPhase): Promise<PhaseResult> => (phase !== 'planning' && run.pinInDoubt && run.plan ? await sureOfMachine(run) : null) ?? PHASE_FUNCTIONS[phase](run);

const STOPPING = 'stopping';
const TAKEN_BACK = 'the request to stop was taken back';
const backFrom = (phase: RunPhase, because: string): GoneThrough => ({ kind: 'back', to: NEEDS_BOOT.includes(phase) ? 'powering-off' : phase, because });

/** Takes the fence. After a reset, what was said to the run before it is forgotten. */
async function enter(run: RunContext, phase: RunPhase, note: string): Promise<'as-before' | 'reset'> {
  const before = run.fence;
  const { fence, takenOver } = await run.central(run.limits.taking, `phase ${phase}${note ? `: ${note}` : ''}`).enterPhase({ ...run.ref, phase, note });
  run.fence = fence;
  if (!takenOver && (before === null || before === fence)) return 'as-before';
  run.forgetWhatWasSaidBefore(fence);
  return 'reset';
}

function nextPhase(run: RunContext, phase: RunPhase): RunPhase | null {
  const { plan, input } = run;
  const phases = plan ? phasesOf(input.kind, plan.wipes) : PHASES_OF[input.kind];
  // The node of an intake waits already: no power cycle, no boot to wait for.
  const skipped: readonly RunPhase[] = input.intake && run.cycle === 0 ? ['powering-off', 'arming', 'powering-on', 'awaiting-boot'] : [];
  return phases.slice(phases.indexOf(phase as never) + 1).find((next) => !skipped.includes(next)) ?? null;
}

/** An error nobody foresaw, or a limit that passed without a phase's own word for it. */
async function holdFor(run: RunContext, phase: RunPhase, why: Failure): Promise<GoneThrough> {
  log.error('the run is held', { phase, code: why.code, message: why.message });
  const end = await (why.code === 'device_invalid' ? run.holdForDevice(why) : run.hold(why));
  if (end.kind === 'stop') return { kind: 'back', to: phase, because: STOPPING };
  return backFrom(phase, `resumed after ${why.code}`);
}

async function finish(run: RunContext, outcome: Omit<RunOutcome, 'destroyed'>): Promise<RunOutcome> {
  run.releasePermission();
  run.show('the outcome to be written');
  const central = run.central(run.limits.taking, `outcome: ${outcome.end}${outcome.failure ? ` (${outcome.failure.code})` : ''}`);
  // A request whose run failed, or was stopped, before it was taken is taken now: left in the field, it would start the same again.
  if (outcome.end !== 'withdrawn' && !run.taken) await central.takeRequest({ ...run.ref, kind: run.input.kind }).catch((error: unknown) => log.warn('the request stays in NetBox', { error: String(error) }));
  try {
    const standing = await central.finishRun({ ...run.ref, outcome: { ...outcome, destroyed: run.destroyed } });
    return run.end(standing);
  } catch (error) {
    const loss = fenceLossOf(error);
    if (loss) return { end: 'run-closed', failure: failureOf(error), destroyed: false };
    // The lifecycle writes the outcome when the run could not.
    return { ...outcome, destroyed: run.destroyed };
  }
}
