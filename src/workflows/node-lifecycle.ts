/** The one long-lived workflow of a node. It judges, starts runs and settles their ends; it never fails: an unexpected error holds it. */
import { allHandlersFinished, condition, continueAsNew, isCancellation, log, patched, sleep, workflowInfo } from '@temporalio/workflow';
import type { LifecycleInput, LifecycleView } from '../contracts/messages.js';
import { failureOf } from './failures.js';
import { LifecycleContext } from './lifecycle-context.js';
import { hasEnded, holdWith, publish, tell } from './lifecycle-moves.js';
import { lookAndJudge, runEnded, takeSeenEnd, takeUp, watch } from './lifecycle-steps.js';
import { doVerb, listenForLifecycle } from './lifecycle-verbs.js';

/** A history of this many events is long enough to read on one page; the next one begins. */
const EVENTS_PER_HISTORY = 2000;
const LOOK_AGAIN = '2 minutes';

export async function nodeLifecycle(input: LifecycleInput): Promise<LifecycleView> {
  const life = new LifecycleContext(input);
  listenForLifecycle(life);
  await takeUpSurely(life);
  life.takenUp = true;
  for (;;) {
    if (!life.hasWork()) {
      life.show();
      life.powerNews = false;
      const isCalled = (): boolean => life.hasWork() || life.powerNews;
      if (!life.lookAgain) await condition(isCalled);
      else if (!(await condition(isCalled, LOOK_AGAIN, { summary: 'NetBox could not be read; look again' }))) life.wake = true;
    }
    // Power that changed is shown, and that is all.
    const went = life.hasWork() ? await safely(life, () => step(life)) : 'goes-on';
    if (went === 'ended' || (hasEnded(life.state) && !life.unpublished)) {
      // Signals that came in this last task are not lost: the next one starts anew, and these are looked at here.
      if (!life.hasWork() || hasEnded(life.state)) break;
    }
    if (workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > EVENTS_PER_HISTORY) {
      await condition(allHandlersFinished);
      if (life.runEnd === null && life.said.length === 0) await continueAsNew<typeof nodeLifecycle>({ deviceId: life.deviceId, carried: life.carried() });
    }
  }
  life.show();
  await condition(allHandlersFinished);
  // A signal in the last task of a retired node may say that it is declared again: a new lifecycle looks.
  if (life.wake && hasEnded(life.state)) await continueAsNew<typeof nodeLifecycle>({ deviceId: life.deviceId });
  return life.view();
}

/** Nothing is judged, and no state is written, before the store's own was recalled. */
async function takeUpSurely(life: LifecycleContext): Promise<void> {
  for (;;) {
    try {
      return await takeUp(life);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.error('the store could not be recalled; it is tried again', { message: failureOf(error).message });
      await sleep(LOOK_AGAIN);
    }
  }
}

/** One thing at a time: a run's end, then what people said, then what NetBox says. */
async function step(life: LifecycleContext): Promise<'goes-on' | 'ended'> {
  const end = takeSeenEnd(life);
  if (end) {
    await runEnded(life, end);
    return 'goes-on';
  }
  const said = life.said.shift();
  if (said) {
    await doVerb(life, said);
    return 'goes-on';
  }
  life.wake = false;
  life.lookAgain = false;
  if (life.unpublished && !life.holding && !(await publish(life))) return 'goes-on';
  // Opened and never begun: an error came in between. Its watcher sees that, and it is begun.
  if (life.openRun && life.watching === null && !life.holding) watch(life, life.openRun);
  if (life.waitingNode && !life.openRun) await tellThatItWaits(life);
  return lookAndJudge(life);
}

const WAITS = 'the node has attested and waits in the netboot system';
const WAIT_TOLD_ONCE = 'a-wait-is-told-once';

/** Once until a run takes the node, whatever else is told meanwhile. */
async function tellThatItWaits(life: LifecycleContext): Promise<void> {
  if (!patched(WAIT_TOLD_ONCE)) return life.told === WAITS ? undefined : tell(life, 'info', WAITS);
  if (life.waitTold || life.told === WAITS) return;
  await tell(life, 'info', WAITS);
  life.waitTold = true;
}

async function safely(life: LifecycleContext, work: () => Promise<'goes-on' | 'ended' | void>): Promise<'goes-on' | 'ended'> {
  try {
    return (await work()) ?? 'goes-on';
  } catch (error) {
    if (isCancellation(error)) throw error;
    const why = failureOf(error);
    log.error('the lifecycle goes on after an error', { code: why.code, message: why.message });
    // NetBox away is no reason to hold a node: it is read again.
    if (why.code === 'netbox_unreachable') life.lookAgain = true;
    else await holdWith(life, why).catch((again: unknown) => log.error('the hold could not be kept', { error: String(again) }));
    return 'goes-on';
  }
}
