/** Run numbers are never used twice: Temporal's memory is asked, since a store that was restored may have forgotten some. */
import { runWorkflowId } from '../contracts/messages.js';
import type { TemporalPort } from '../contracts/temporal-port.js';

/** The first number from `from` on that Temporal does not know. */
export async function firstUnknownRun(temporal: Pick<TemporalPort, 'look'>, deviceId: string, from: number): Promise<number> {
  let run = from;
  while ((await temporal.look(runWorkflowId(deviceId, run))).kind !== 'absent') run++;
  return run;
}
