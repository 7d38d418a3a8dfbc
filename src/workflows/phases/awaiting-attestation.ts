/** Waits for the attestation of this attempt, then pins disks and orders by what the node reported. */
import { patched } from '@temporalio/workflow';
import { BOOT_ATTEMPTS } from '../../domain/limits.js';
import { failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';
import { back, failed, NEXT, STOPPED, type PhaseResult } from './result.js';

const TRIED_AGAIN = 'a-boot-without-attestation-is-tried-again';

export async function awaitingAttestation(run: RunContext): Promise<PhaseResult> {
  if (!run.attempt) await adoptIntake(run);
  const { id } = run.attempt!;
  const { acceptAttestation } = run.central(run.limits.awaitingAttestation, 'judge the attestation');
  const until = Date.now() + run.limits.awaitingAttestation * 1000;
  for (;;) {
    const left = Math.max(1, (until - Date.now()) / 1000);
    const waited = await run.until(() => run.heard.attested.has(id), left, "this attempt's attestation");
    if (waited === 'stop') return STOPPED;
    const accepted = await acceptAttestation({ ...run.ref, bootAttempt: id, plan: run.plan! });
    if (accepted.kind === 'refused') return failed(accepted.failure);
    if (accepted.kind === 'accepted') {
      run.proof = accepted.proof;
      run.disk = accepted.disk;
      run.actions = accepted.actions;
      run.nextAction = 0;
      return NEXT;
    }
    run.heard.attested.delete(id);
    if (waited === 'limit') break;
  }
  // The node that waited is gone: the usual way, through power off.
  if (run.input.intake && run.cycle === 0) return back('powering-off', 'the waiting node did not attest again');
  // A refusal alone ends nothing, or any stranger on the network could fail a run; it names the failure when nothing better came.
  const reason = run.heard.refusals.get(id);
  // The gate served it and nothing came: the answer may have been lost on its way, so it is one of the boots that never came.
  if (!reason && patched(TRIED_AGAIN) && ++run.bootsNotSeen < BOOT_ATTEMPTS) return back('powering-off', `boot attempt ${run.attempt!.number} did not attest`);
  return failed(reason ? failure('attestation_refused', { reason }) : failure('attestation_not_seen', { minutes: Math.round(run.limits.awaitingAttestation / 60) }));
}

/** The node waits in the menu already: its boot becomes this run's attempt, and its agent attests again. */
async function adoptIntake(run: RunContext): Promise<void> {
  const adopted = await run.central(run.limits.arming, 'take over the boot in which the node waits').adoptIntakeAttempt({ ...run.ref, attestationId: run.input.intake!.attestationId });
  run.attempt = { id: adopted.bootAttempt, number: adopted.number };
}
