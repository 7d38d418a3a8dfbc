/** Pins what the run will do; checks the artefact and the machine behind the BMC. Nothing is sent to the node. */
import { isCancellation, log, patched } from '@temporalio/workflow';
import type { RunContext } from '../run-context.js';
import { compareMachine } from './machine.js';
import { ended, failed, NEXT, STOPPED, type PhaseResult } from './result.js';

export async function planning(run: RunContext): Promise<PhaseResult> {
  const { planRun } = run.central(run.limits.planning, `plan run ${run.input.run} of ${run.input.nodeName}`);
  for (;;) {
    run.show('class, template and digest');
    const planned = await planRun({ ...run.ref, kind: run.input.kind });
    if (planned.kind === 'planned') {
      run.plan = planned.plan;
      break;
    }
    if (planned.failure.code === 'device_not_found') return ended({ end: 'withdrawn', failure: planned.failure });
    if (planned.failure.code !== 'device_invalid') return failed(planned.failure);
    const end = await run.holdForDevice(planned.failure);
    if (end.kind === 'stop') return STOPPED;
  }
  // The device was read just now.
  run.pinInDoubt = false;
  const notTheMachine = await compareMachine(run);
  if (notTheMachine) return notTheMachine;
  await noteBmc(run);
  return (await checkImage(run)) ?? NEXT;
}

/** Runs of before have no such line in their journal. */
const BMC_NOTED = 'bmc-noted';

/** Product and firmware of the BMC, for the journal; a run does without. */
async function noteBmc(run: RunContext): Promise<void> {
  const { bmc } = run.plan!;
  if (bmc.type === 'manual' || !patched(BMC_NOTED)) return;
  try {
    await run.site(run.limits.activityTry, `product and firmware of the BMC ${bmc.host}`).noteBmc({ ...run.ref, bmc });
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('the BMC was not noted', { error });
  }
}

/** No digest, no install: the bytes are hashed before any node is offered them. */
async function checkImage(run: RunContext): Promise<PhaseResult | null> {
  const { image } = run.plan!;
  if (!image) return null;
  run.show(`the digest of ${image.source}`);
  const check = await run.site(run.limits.planning, `sha256 of ${image.source}`).checkImage({ image });
  return check.kind === 'bad' ? failed(check.failure) : null;
}
