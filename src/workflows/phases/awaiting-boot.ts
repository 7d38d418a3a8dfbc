/** Waits for our boot request of this attempt; a boot that never comes is tried again from power off, three times in all. */
import { BOOT_ATTEMPTS } from '../../domain/limits.js';
import { failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';
import { back, failed, NEXT, STOPPED, type PhaseResult } from './result.js';

export async function awaitingBoot(run: RunContext): Promise<PhaseResult> {
  const { id, number } = run.attempt!;
  const { confirmBootSeen } = run.central(run.limits.awaitingBoot, 'was the boot file served?');
  const waited = await run.until(() => run.heard.bootSeen.has(id) || run.heard.attested.has(id), run.limits.awaitingBoot, `the node to ask for its boot file (attempt ${number})`);
  if (waited === 'stop') return STOPPED;
  // The store is asked, whatever the signals said: a lost signal is no lost boot, and a signal alone is no boot.
  if (await confirmBootSeen({ ...run.ref, bootAttempt: id })) return NEXT;
  run.bootsNotSeen++;
  if (run.bootsNotSeen >= BOOT_ATTEMPTS) return failed(failure('boot_not_seen', { attempts: run.bootsNotSeen }));
  return back('powering-off', `boot attempt ${number} was not seen`);
}
