/** How a lifecycle's state is moved, held and told: in the store, in NetBox, to people. */
import { patched } from '@temporalio/workflow';
import type { Failure } from '../domain/errors.js';
import { STATES, type LifecycleState } from '../domain/states.js';
import { IllegalTransition, isLegal, moved, type LifecycleEvent, type Place } from '../domain/transitions.js';
import type { DeviceRecord } from '../contracts/store.js';
import type { LifecycleContext } from './lifecycle-context.js';

/** Moves the state by an event of the table, and keeps it in the store. */
export async function move(life: LifecycleContext, event: LifecycleEvent, because: string, by?: string): Promise<void> {
  const left: Place = { state: life.state, previous: life.previousState };
  const next = movedAsThen(left, event);
  if (next.state !== left.state) life.since = Date.now();
  life.state = next.state;
  life.previousState = next.previous;
  await keep(life, because, by);
}

/** Histories from before `a-start-is-no-return` forgot a state that was left for the one left before it, and had no way back then. */
function movedAsThen(left: Place, event: LifecycleEvent): Place {
  const next = moved(left, event);
  const wasForgotten = next.previous !== null && next.state === left.previous;
  if (wasForgotten && !patched(NO_RETURN)) return { ...next, previous: null };
  const hadNoWay = next.state === 'failed' && next.previous === null && left.previous === null;
  if (hadNoWay && !patched(NO_RETURN)) throw new IllegalTransition(left.state, event);
  return next;
}
const NO_RETURN = 'a-start-is-no-return';

export const keep = (life: LifecycleContext, because: string, by?: string): Promise<void> =>
  life.central.keepState({ deviceId: life.deviceId, state: life.state, previousState: life.previousState, hold: life.holding, because, nextRequest: life.nextRequest, adopted: life.adopted, ...(by && { by }) });

/** A person has to decide. With a run open the state stays, and the hold stands beside it. */
export async function holdWith(life: LifecycleContext, why: Failure, by?: string): Promise<void> {
  const isSame = life.holding?.code === why.code && life.holding.message === why.message;
  // A hold that came while a run was open stands beside an idle state once that run is closed: then the state follows.
  if (isSame && !isLegal(life.state, 'held')) return;
  if (!isSame) life.holding = life.holdView(why);
  if (isLegal(life.state, 'held')) await move(life, 'held', why.message, by);
  else await keep(life, why.message, by);
}

export async function endHold(life: LifecycleContext, because: string, by?: string): Promise<void> {
  life.holding = null;
  if (life.state === 'held') await move(life, 'hold ended', because, by);
  else await keep(life, because, by);
}

/** The field of a run that was withdrawn is the person's own; any other's was meant for the run, also when it was set while the run was open. */
export function rememberEnd(life: LifecycleContext, last: DeviceRecord['lastRun']): void {
  life.endedRun = last && last.outcome.end !== 'withdrawn' ? { run: last.run, kind: last.kind } : null;
}

/** Writes the state's status to NetBox, and takes with it what still asks for the run that has ended. @returns false when a person changed it meanwhile: then the lifecycle is held */
export async function publish(life: LifecycleContext, insist = false): Promise<boolean> {
  life.unpublished = true;
  const wrote = await life.netbox.writeStatus({ deviceId: life.deviceId, state: life.state, status: STATES[life.state].netboxStatus, insist, ended: life.endedRun });
  life.unpublished = false;
  life.endedRun = null;
  if (wrote.kind !== 'conflict') return true;
  // It has ended here, and a person declares it anew: theirs stands.
  if (hasEnded(life.state)) return true;
  await holdWith(life, wrote.failure);
  return false;
}

/** Told to people once, in NetBox's journal. */
export async function tell(life: LifecycleContext, kind: 'info' | 'success' | 'warning' | 'danger', text: string, run: number | null = null): Promise<void> {
  if (life.told === text) return;
  life.told = text;
  await life.netbox.writeJournal({ deviceId: life.deviceId, run, kind, text });
}

export const hasEnded = (state: LifecycleState): boolean => STATES[state].waysOut === 'none';
