/**
 * Which machine is behind the BMC. It is compared before a run's first command, and anew when a person names it otherwise in NetBox;
 * whoever answers there and is not known to be the device gets no command: a person looks, and may approve what was found.
 */
import { patched } from '@temporalio/workflow';
import { failure, type Failure } from '../../domain/errors.js';
import type { RunPhase } from '../../domain/runs.js';
import type { RunContext } from '../run-context.js';
import { back, failed, STOPPED, type PhaseResult } from './result.js';

/** Runs of before went on with what they had pinned when they planned. */
const PIN_RENEWED = 'a-pin-is-renewed-after-a-bmc-hold';
/** Phases before the first command, and the one that sends it: nothing was done to a machine that is not the device. */
const BEFORE_OFF: readonly RunPhase[] = ['planning', 'taking', 'powering-off'];

/** Before each thing asked of a BMC behind a hold. @returns null when the machine was compared */
export async function sureOfMachine(run: RunContext): Promise<PhaseResult | null> {
  if (run.pinInDoubt && (await renewPin(run)) === 'stop') return STOPPED;
  const { bmc, systemUuid } = run.plan!;
  if (run.compared?.bmc === bmc && run.compared.systemUuid === systemUuid) return null;
  return compareMachine(run);
}

/** @returns null when the machine behind the BMC is the device, and the phase may go on */
export async function compareMachine(run: RunContext): Promise<PhaseResult | null> {
  for (;;) {
    if (run.pinInDoubt && (await renewPin(run)) === 'stop') return STOPPED;
    const { bmc, systemUuid } = run.plan!;
    run.show(`the BMC at ${bmc.host || bmc.type} to say which machine it is`);
    const check = await run.site(run.limits.planning, `machine UUID via ${bmc.type.toUpperCase()} ${bmc.host}`).checkMachine({ ...run.ref, bmc, systemUuid, limitSeconds: run.limits.poweringOff, pollSeconds: run.limits.powerPoll });
    if (check.kind === 'same') {
      const before = run.compared;
      run.compared = { bmc, systemUuid };
      return before === null || before.systemUuid === systemUuid ? null : anotherMachine(run, before.systemUuid);
    }
    if ((await holdForMachine(run, check)) === 'stop') return STOPPED;
  }
}

/** @param seen `found` is the UUID that was read, empty when there was none; absent when nothing answered */
export async function holdForMachine(run: RunContext, seen: { readonly failure: Failure; readonly found?: string }): Promise<'look-again' | 'stop'> {
  const { bmc } = run.plan!;
  const end = await run.hold(seen.failure);
  if (end.kind === 'stop') return 'stop';
  if (end.kind === 'verb' && end.verb === 'approve' && seen.found !== undefined) await run.central(run.limits.taking, `${end.input.by} approves the machine`).approveMachine({ ...run.ref, uuid: seen.found, bmc, by: end.input.by });
  return 'look-again';
}

/** The former machine was powered, and perhaps booted: this one begins at off. What the former one did counts for none but it. */
function anotherMachine(run: RunContext, was: string | null): PhaseResult | null {
  if (run.orders.length > 0) return failed(failure('machine_changed', { expected: run.plan!.systemUuid ?? 'without a UUID', was: was ?? 'one without a UUID' }));
  return BEFORE_OFF.includes(run.phase) ? null : back('powering-off', 'NetBox names another machine');
}

/** BMC address and system_uuid as NetBox has them now; all else stays as it was pinned. */
async function renewPin(run: RunContext): Promise<'known' | 'stop'> {
  for (;;) {
    run.pinInDoubt = false;
    if (!patched(PIN_RENEWED)) return 'known';
    const { bmc, systemUuid } = run.plan!;
    run.show('NetBox to name the machine');
    const now = await run.central(run.limits.taking, 'BMC and system_uuid in NetBox').renewPin({ ...run.ref, bmc, systemUuid });
    switch (now.kind) {
      case 'as-before':
        return 'known';
      case 'renewed':
        run.plan = { ...run.plan!, bmc: now.bmc, systemUuid: now.systemUuid };
        return 'known';
      case 'refused':
        if ((await run.holdForDevice(now.failure)).kind === 'stop') return 'stop';
    }
  }
}
