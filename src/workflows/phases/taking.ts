/** Takes the request from NetBox: until here clearing the field cancels, from here on `cancel` does. */
import { failure } from '../../domain/errors.js';
import type { RunContext } from '../run-context.js';
import { ended, NEXT, type PhaseResult } from './result.js';

export async function taking(run: RunContext): Promise<PhaseResult> {
  if (run.taken) return NEXT;
  run.show('NetBox to clear desired_action');
  const taken = await run.central(run.limits.taking, `take ${run.input.kind} from NetBox`).takeRequest({ ...run.ref, kind: run.input.kind });
  run.taken = taken.kind === 'taken';
  return run.taken ? NEXT : ended({ end: 'withdrawn', failure: failure('request_withdrawn') });
}
