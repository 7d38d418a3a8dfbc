/** May this request start a run in this state? A pure decision; the lifecycle does what it says. */
import { failure, type Failure } from './errors.js';
import { REQUESTS, type Request, type RunKind } from './runs.js';
import { ENDED_STATES, isOneOf, RUNNING_STATES, WAITING_STATES, type LifecycleState } from './states.js';
import { isLegal, STARTED_EVENT } from './transitions.js';

export type Judgement =
  /** Nothing is asked, or what is asked is being done. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'start'; readonly run: RunKind }
  /** Kept as the next request, and shown. */
  | { readonly kind: 'keep'; readonly request: Request; readonly why: string }
  /** The open run is asked to stop at its next safe point; then the request is judged again. */
  | { readonly kind: 'stop-open-run'; readonly request: Request }
  | { readonly kind: 'refuse'; readonly failure: Failure };

export const isRequest = (value: string): value is Request => isOneOf(REQUESTS, value);

const REFUSED_BECAUSE: { readonly [request in Request]: string } = {
  provision: 'it runs; ask for reprovision',
  reprovision: 'there is nothing to replace; ask for provision',
  wipe: 'there is nothing to wipe',
  retire: 'it has ended already',
};
const ENDED = 'its lifecycle has ended; declare the device again in NetBox';

/** @param openKind kind of the open run, null when none is open; until that run has taken its request, the field still shows it */
export function judgeRequest(state: LifecycleState, request: Request | null, openKind: RunKind | null): Judgement {
  if (openKind !== null || isOneOf(RUNNING_STATES, state)) {
    if (request === null || request === openKind) return { kind: 'nothing' };
    if (request === 'retire') return { kind: 'stop-open-run', request };
    return { kind: 'keep', request, why: `a ${openKind ?? 'former'} run is open` };
  }
  if (request === null) return { kind: 'nothing' };
  if (isOneOf(WAITING_STATES, state)) return { kind: 'keep', request, why: `the node is ${state}` };
  if (isLegal(state, STARTED_EVENT[request])) return { kind: 'start', run: request };
  return { kind: 'refuse', failure: failure('request_refused', { request, state, why: isOneOf(ENDED_STATES, state) ? ENDED : REFUSED_BECAUSE[request] }) };
}

/** Does this run destroy what the disks hold before it writes? A reprovision and a wipe always do. */
export const requiresWipe = (kind: RunKind, retireWipes: boolean): boolean => kind === 'reprovision' || kind === 'wipe' || (kind === 'retire' && retireWipes);

/** Does this run netboot the node? A retire that wipes nothing only powers it off. */
export const requiresNetboot = (kind: RunKind, retireWipes: boolean): boolean => kind !== 'retire' || retireWipes;
