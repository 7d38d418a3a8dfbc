/** Power to on or off, as a phase needs it: asked, observed, asked again at most once, then held. */
import { patched } from '@temporalio/workflow';
import { POWER_REQUESTS } from '../../domain/limits.js';
import { failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';
import { sureOfMachine } from './machine.js';
import { NEXT, STOPPED, type PhaseResult } from './result.js';

const NOT_SENT_AGAIN = 'a-power-command-that-was-not-sent-is-asked-for-again';

/** @returns NEXT when the BMC read it, or a person did it for a manual node */
export async function changePower(run: RunContext, command: 'on' | 'off', cycle: string): Promise<PhaseResult> {
  const { limits } = run;
  const limitSeconds = command === 'off' ? limits.poweringOff : limits.poweringOn;
  for (let request = 1; ; request++) {
    const unsure = await sureOfMachine(run);
    if (unsure) return unsure;
    const { bmc } = run.plan!;
    const summary = `power ${command} via ${bmc.type === 'manual' ? 'a person' : `${bmc.type.toUpperCase()} ${bmc.host}`}`;
    run.show(`the BMC to read ${command}`);
    const result = await run.site(3 * limitSeconds + 2 * limits.settling, summary).changePower({
      ...run.ref, bmc, command, intent: `${run.fence}/${cycle}/${command}/${request}`, limitSeconds, settlingSeconds: limits.settling, pollSeconds: limits.powerPoll,
    });
    if (result.kind === 'reached') {
      run.power = result.power;
      return NEXT;
    }
    if (result.kind === 'not-reached') {
      run.power = result.power;
      // What was not sent had no effect, whatever the power reads.
      if (request < POWER_REQUESTS && result.answer === 'not-sent' && patched(NOT_SENT_AGAIN)) continue;
      // A real reading shows that the last request had no effect: one more is not a second command for one effect.
      if (request < POWER_REQUESTS && result.power !== 'unknown' && result.power !== 'settling') continue;
    }
    const isManual = bmc.type === 'manual';
    // Nothing was armed at a node without a BMC: whoever powers it on also chooses what it boots from.
    const task = `power ${run.input.nodeName} ${command}${command === 'on' ? ' and boot it once from the network' : ''}, then: metalflow node resume ${run.input.nodeName}`;
    const why = isManual ? failure('bmc_manual_task', { task }) : result.failure;
    const end = await run.hold(why, isManual ? null : () => waitForPower(run, command));
    if (end.kind === 'stop') return STOPPED;
    // By itself: the BMC reads it. Manual: the person's word stands in for the BMC's.
    if (end.kind === 'by-itself' || (isManual && end.kind === 'verb' && end.verb === 'resume')) {
      run.power = isManual ? 'unknown' : command;
      return NEXT;
    }
  }
}

const waitForPower = (run: RunContext, wanted: 'on' | 'off'): Promise<unknown> =>
  run.site(null, `waits until the BMC reads ${wanted}`).waitForPower({ ...run.ref, bmc: run.plan!.bmc, wanted, everySeconds: run.limits.bmcRecheck, settlingSeconds: run.limits.settling });
