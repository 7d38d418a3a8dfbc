/** Whoever answers at the BMC's address is not known to be the device: a person looks, and may approve what was found. */
import type { Failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';

/** @param seen `found` is the UUID that was read, empty when there was none; absent when nothing answered */
export async function holdForMachine(run: RunContext, seen: { readonly failure: Failure; readonly found?: string }): Promise<'look-again' | 'stop'> {
  const end = await run.hold(seen.failure);
  if (end.kind === 'stop') return 'stop';
  if (end.kind === 'verb' && end.verb === 'approve' && seen.found !== undefined) await run.central(run.limits.taking, `${end.input.by} approves the machine`).approveMachine({ ...run.ref, uuid: seen.found, by: end.input.by });
  return 'look-again';
}
