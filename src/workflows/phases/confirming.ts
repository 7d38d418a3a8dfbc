/** The end is seen, not assumed: the installed system shows itself, or the BMC reads off twice. */
import { condition } from '@temporalio/workflow';
import { failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';
import { changePower } from './change-power.js';
import { holdForMachine, sureOfMachine } from './machine.js';
import { ended, NEXT, STOPPED, type PhaseResult } from './result.js';

export async function confirming(run: RunContext): Promise<PhaseResult> {
  switch (run.plan!.confirmBy) {
    case 'seed-fetched': return installedSystemSeen(run, 'the installed system to fetch its seed');
    case 'phone-home': return installedSystemSeen(run, 'the installed system to phone home');
    case 'power-off': return seenOffTwice(run);
    // Its seed was written and read back, and it took the last reboot.
    case 'seed-written': return NEXT;
    case 'none': return NEXT;
  }
}

async function installedSystemSeen(run: RunContext, waitsFor: string): Promise<PhaseResult> {
  for (;;) {
    const waited = await run.until(() => run.heard.systemSeen, run.limits.confirmingSeed, waitsFor);
    if (waited !== 'limit') return waited === 'seen' ? NEXT : STOPPED;
    const why = failure('seed_not_fetched', { minutes: Math.round(run.limits.confirmingSeed / 60) });
    const end = await run.hold(why, () => condition(() => run.heard.systemSeen));
    if (end.kind === 'by-itself') continue;
    if (end.kind === 'stop') return STOPPED;
    if (end.verb === 'retry') return ended({ end: 'failed', failure: why, retryBy: end.input.by });
  }
}

async function seenOffTwice(run: RunContext): Promise<PhaseResult> {
  for (;;) {
    const unsure = await sureOfMachine(run);
    if (unsure) return unsure;
    const { bmc, systemUuid } = run.plan!;
    run.show('two reads of off through fresh connections');
    const { apart, settling } = { apart: run.limits.powerReadsApart, settling: run.limits.settling };
    const confirmed = await run.site(run.limits.confirmingOff, `off twice via ${bmc.type.toUpperCase()} ${bmc.host}`).confirmOff({ ...run.ref, bmc, systemUuid, limitSeconds: run.limits.confirmingOff / 2, pollSeconds: run.limits.powerPoll, apartSeconds: apart, settlingSeconds: settling });
    if (confirmed.kind === 'off-twice') {
      run.power = 'off';
      return NEXT;
    }
    if (confirmed.kind === 'another-machine') {
      // Its power is no news of ours: a hold that ended by itself when it reads off would begin again at once, for ever.
      if ((await holdForMachine(run, confirmed)) === 'stop') return STOPPED;
      continue;
    }
    run.power = confirmed.power;
    const end = await run.hold(confirmed.failure, bmc.type === 'manual' ? null : () => run.site(null, 'waits until the BMC reads off').waitForPower({ ...run.ref, bmc, wanted: 'off', everySeconds: run.limits.bmcRecheck, settlingSeconds: settling }));
    if (end.kind === 'stop') return STOPPED;
    if (end.kind !== 'verb' || bmc.type === 'manual') continue;
    const off = await changePower(run, 'off', `cycle-${run.cycle}-confirm-${Date.now()}`);
    // A stop is honoured behind one more look.
    if (off.kind !== 'next' && off.kind !== 'stopped') return off;
  }
}
