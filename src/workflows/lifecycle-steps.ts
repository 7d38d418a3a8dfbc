/** What a lifecycle does: takes up what the store shows, judges the device, starts runs, settles their ends. */
import { ChildWorkflowCancellationType, getExternalWorkflowHandle, ParentClosePolicy, patched, startChild } from '@temporalio/workflow';
import { failure } from '../domain/errors.js';
import { judgeRequest } from '../domain/requests.js';
import type { Request, RunKind } from '../domain/runs.js';
import { isOneOf, RUNNING_STATES, STATES } from '../domain/states.js';
import { endEvent, isLegal, STARTED_EVENT } from '../domain/transitions.js';
import { runWorkflowId, SIGNALS, type RunInput, type RunOutcome, type WatchedEnd } from '../contracts/messages.js';
import type { DeviceRecord } from '../contracts/store.js';
import type { DeviceLook, Looked } from '../activities/netbox.js';
import { isCancellation } from './failures.js';
import type { LifecycleContext, OpenRun } from './lifecycle-context.js';
import { endHold, hasEnded, holdWith, keep, move, publish, rememberEnd, tell } from './lifecycle-moves.js';
import { nodeRun } from './node-run.js';
import { attribute } from './run-display.js';

/** An open run is taken up before NetBox is asked anything. */
export async function takeUp(life: LifecycleContext): Promise<void> {
  const { record, distrust, trySeconds } = await life.central.recallDevice({ deviceId: life.deviceId });
  if (trySeconds) life.trySeconds = trySeconds;
  if (!record) return;
  life.recall(record);
  if (distrust) await holdWith(life, failure('installation_mismatch', { why: distrust }));
  // A former lifecycle could not write it while NetBox was away.
  const status = STATES[record.state].netboxStatus;
  life.unpublished = status !== null && record.netboxStatus !== null && record.netboxStatus !== status;
  if (life.openRun) return watch(life, life.openRun);
  if (life.unpublished) rememberEnd(life, record.lastRun);
  // The run wrote its own end, and the former lifecycle died before it could move the state.
  if (isUnsettled(record)) takeUpEnd(life, record);
}

/** The state of an open run, whose end stands in the store: nobody has moved the state yet. */
const isUnsettled = (record: DeviceRecord): record is DeviceRecord & { lastRun: object } => record.openRun === null && record.lastRun !== null && isOneOf(RUNNING_STATES, record.state);

const UNSETTLED = 'an-unsettled-end-is-taken-up';

function takeUpEnd(life: LifecycleContext, { lastRun }: { lastRun: NonNullable<DeviceRecord['lastRun']> }): void {
  life.openRun = { run: lastRun.run, kind: lastRun.kind, workflowId: runWorkflowId(life.deviceId, lastRun.run) };
  life.runEnd = { run: lastRun.run, end: { kind: 'ended', outcome: lastRun.outcome } };
}

/** Follows the run in the background; its end wakes the lifecycle. */
export function watch(life: LifecycleContext, run: { run: number; workflowId: string }): void {
  life.watching = run.run;
  const sawEnd = (end: WatchedEnd): void => {
    // One that is no longer followed ends for itself alone: what is open by now is another.
    if (life.watching === run.run || !patched(OWN_END)) life.runEnd = { run: run.run, end };
  };
  life.watcher.watchRun({ workflowId: run.workflowId }).then(sawEnd, (error: unknown) => {
    if (!isCancellation(error)) sawEnd({ kind: 'terminated' });
  });
}
const OWN_END = 'an-end-is-of-its-own-run';

/** The end of the open run, which was seen. */
export function takeSeenEnd(life: LifecycleContext): WatchedEnd | null {
  const seen = life.runEnd;
  life.runEnd = null;
  if (!seen || !life.openRun) return null;
  return seen.run === life.openRun.run || !patched(OWN_END) ? seen.end : null;
}

/** Reads the device and does what it asks for. @returns `ended` when there is nothing to live for */
export async function lookAndJudge(life: LifecycleContext): Promise<'goes-on' | 'ended'> {
  const looked = await life.netbox.lookAtDevice({ deviceId: life.deviceId });
  switch (looked.kind) {
    case 'not-ours':
      return life.openRun ? 'goes-on' : 'ended';
    case 'gone':
      return deviceGone(life, looked.record !== null);
    case 'invalid':
      return refused(life, looked);
    case 'found':
      break;
  }
  const { device, record, distrust } = looked;
  Object.assign(life, { name: device.name, site: device.site, nodeClass: device.nodeClass, adopted: record.adopted, power: record.power ?? life.power });
  if (!life.openRun && !life.holding) Object.assign(life, { state: record.state, previousState: record.previousState, since: Date.parse(record.stateSince), lastRun: record.lastRun });
  if (distrust) {
    await believeTheStore(life, record);
    await holdWith(life, failure('installation_mismatch', { why: distrust }));
    return 'goes-on';
  }
  if (life.holding?.code === 'device_invalid') await endHold(life, 'NetBox was fixed');
  // An error came between the end of the run and the move of the state, and its hold is over.
  if (!life.openRun && !life.holding && isUnsettled(record) && patched(UNSETTLED)) {
    takeUpEnd(life, record);
    return 'goes-on';
  }
  if (device.unknownAction) await tell(life, 'warning', `desired_action ${device.unknownAction} is none of provision, reprovision, wipe, retire; nothing was started`);
  if (isDeclaredActive(life, device, record) && patched('an-active-node-is-believed')) {
    life.adopted = true;
    await move(life, 'declared active', 'a person set it active in NetBox');
    if (!(await publish(life))) return 'goes-on';
  }
  await judge(life, device);
  return 'goes-on';
}

/** The device cannot be read, or cannot be begun with. */
async function refused(life: LifecycleContext, { failure: why, record }: Extract<Looked, { kind: 'invalid' }>): Promise<'goes-on' | 'ended'> {
  const isNode = record !== null && !hasEnded(life.state);
  // Of what is no node, nobody sees a hold: NetBox's journal says it.
  const wasTold = !isNode && patched('a-refused-device-is-told-once');
  if (wasTold) await life.netbox.tellRefusal({ deviceId: life.deviceId });
  // It has ended, and stays what it reads: nobody waits for a verb, so nothing is held.
  if (hasEnded(life.state) && (wasTold || patched('an-ended-node-is-told'))) {
    if (!wasTold) await tell(life, 'warning', why.message);
    return 'ended';
  }
  if (!record) life.name = String(why.details?.['name'] || life.deviceId);
  await holdWith(life, why);
  return 'goes-on';
}

/** Whoever sets an idle node active says that a system runs on it. To believe that destroys nothing; not to believe it gives the system's next boot the menu. */
const isDeclaredActive = (life: LifecycleContext, device: DeviceLook, { netboxStatus }: DeviceRecord): boolean =>
  !life.openRun && !life.holding && device.status === 'active' && netboxStatus !== null && netboxStatus !== 'active' && isLegal(life.state, 'declared active');

/** What the store holds is what counts, also when it is another store: a run that it does not know is stopped where it is. */
export async function believeTheStore(life: LifecycleContext, record: DeviceRecord): Promise<void> {
  const stray = life.openRun && record.openRun?.run !== life.openRun.run ? life.openRun : null;
  life.recall(record);
  if (!stray) return;
  life.watching = null;
  await getExternalWorkflowHandle(stray.workflowId).signal(SIGNALS.stopAtSafePoint.name, { by: 'a store that does not know this run', request: null }).catch(() => undefined);
}

async function deviceGone(life: LifecycleContext, known: boolean): Promise<'goes-on' | 'ended'> {
  if (life.openRun) {
    await askToStop(life, 'NetBox', null);
    return 'goes-on';
  }
  if (known && isLegal(life.state, 'device gone')) {
    life.holding = null;
    await move(life, 'device gone', 'NetBox no longer has the device');
  }
  return 'ended';
}

async function judge(life: LifecycleContext, device: DeviceLook): Promise<void> {
  // A hold beside a state without a run is a hold all the same.
  const judgement = judgeRequest(life.holding && !life.openRun ? 'held' : life.state, device.desiredAction, life.runKind());
  const isTakenBack = life.nextRequest === 'retire' && device.desiredAction !== 'retire';
  const kept = judgement.kind === 'keep' || judgement.kind === 'stop-open-run' ? judgement.request : null;
  if (kept !== life.nextRequest) {
    life.nextRequest = kept;
    await keep(life, kept ? `${kept} is the next request` : 'the next request was taken back');
  }
  if (isTakenBack && life.openRun && patched(STOP_TAKEN_BACK)) await takeBackStop(life, life.openRun, 'retire');
  switch (judgement.kind) {
    case 'nothing':
    case 'keep':
      // A run that is held for the device looks again.
      if (life.openRun) await getExternalWorkflowHandle(life.openRun.workflowId).signal(SIGNALS.deviceChanged.name, { source: 'temporal' }).catch(() => undefined);
      if (judgement.kind === 'nothing' && device.desiredAction === null && (device.unknownAction === null || !patched('an-oddity-is-told-once'))) life.told = null;
      return;
    case 'refuse':
      return tell(life, 'warning', judgement.failure.message);
    case 'stop-open-run':
      return askToStop(life, 'NetBox', judgement.request);
    case 'start':
      return startRun(life, judgement.run, { how: 'netbox' });
  }
}

export async function askToStop(life: LifecycleContext, by: string, request: RunKind | null): Promise<void> {
  const run = life.openRun;
  if (!run) return;
  const asked = life.stopAsked?.run === run.run ? life.stopAsked : null;
  // A stop that NetBox may take back is asked for again by what NetBox may not.
  if (asked && !(asked.request !== null && request === null && patched(STOP_TAKEN_BACK))) return;
  life.stopAsked = { run: run.run, request };
  await getExternalWorkflowHandle(run.workflowId).signal(SIGNALS.stopAtSafePoint.name, { by, request }).catch(() => undefined);
}

async function takeBackStop(life: LifecycleContext, { workflowId }: OpenRun, request: Request): Promise<void> {
  if (life.stopAsked?.request === request) life.stopAsked = null;
  await getExternalWorkflowHandle(workflowId).signal(SIGNALS.stopTakenBack.name, { request }).catch(() => undefined);
}
const STOP_TAKEN_BACK = 'a-stop-is-taken-back';

export async function startRun(life: LifecycleContext, kind: RunKind, asked: RunInput['asked']): Promise<void> {
  const waits = kind === 'provision' && (life.state === 'planned' || life.state === 'available') ? life.waitingNode : null;
  const opened = await life.central.openRun({ deviceId: life.deviceId, kind, asked, intake: waits });
  life.waitingNode = null;
  life.waitTold = false;
  life.openRun = { run: opened.input.run, kind: opened.input.kind, workflowId: opened.workflowId };
  await move(life, STARTED_EVENT[opened.input.kind], `run ${opened.input.run} (${opened.input.kind}) started`);
  // A status that a person changed since our last write: the run is not begun, and its request not taken.
  if (!(await publish(life))) {
    const why = life.holding!;
    await settle(life, { end: 'withdrawn', failure: failure(why.code, why.details) }, false);
    await holdWith(life, failure(why.code, why.details));
    return;
  }
  await begin(life, opened.input, opened.workflowId);
}

async function begin(life: LifecycleContext, input: RunInput, workflowId: string): Promise<void> {
  try {
    await startChild(nodeRun, {
      workflowId,
      args: [input],
      // The run outlives its lifecycle's continue-as-new; `watchRun` learns its end.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      // It outlives a cancelled lifecycle too.
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      staticSummary: `${input.kind} of ${input.nodeName}, run ${input.run}`,
      typedSearchAttributes: [
        { key: attribute.node, value: input.nodeName },
        { key: attribute.device, value: input.deviceId },
        { key: attribute.runKind, value: input.kind },
        { key: attribute.site, value: input.site },
        { key: attribute.state, value: life.state },
        { key: attribute.phase, value: 'planning' },
      ],
    });
  } catch (error) {
    // A former lifecycle started it.
    if ((error as Error).name !== 'WorkflowExecutionAlreadyStartedError') throw error;
  }
  watch(life, { run: input.run, workflowId });
}

/** The open run has ended somehow, or was never begun. */
export async function runEnded(life: LifecycleContext, end: WatchedEnd): Promise<void> {
  const run = life.openRun!;
  life.watching = null;
  if (end.kind === 'never-started') {
    // The store kept what it was opened with, and gives that back for a run that is open.
    const opened = await life.central.openRun({ deviceId: life.deviceId, kind: run.kind, asked: { how: 'netbox' }, intake: null });
    return begin(life, opened.input, opened.workflowId);
  }
  const outcome: Omit<RunOutcome, 'destroyed'> = end.kind === 'ended' ? end.outcome : { end: 'failed', failure: failure('run_terminated') };
  await settle(life, outcome, true);
}

/** Writes the outcome once, withdraws what was open, and moves the state. */
async function settle(life: LifecycleContext, outcome: Omit<RunOutcome, 'destroyed'>, publishes: boolean): Promise<void> {
  const run = life.openRun!;
  const standing = await life.central.closeRun({ deviceId: life.deviceId, run: run.run, outcome: { ...outcome, destroyed: false } });
  life.openRun = null;
  life.stopAsked = null;
  life.lastRun = { run: run.run, kind: run.kind, outcome: standing, at: new Date().toISOString() };
  rememberEnd(life, life.lastRun);
  const event = standing.unproven ? 'removal attested' : (endEvent(standing.end, standing.destroyed) ?? (isOneOf(RUNNING_STATES, life.state) && patched(UNSETTLED) ? 'run failed' : null));
  if (event) await move(life, event, `run ${run.run} (${run.kind}) ended: ${standing.end}${standing.failure ? ` (${standing.failure.code})` : ''}`);
  if (!hasEnded(life.state)) life.wake = true;
  if (publishes) await tellOfEnd(life, run, standing);
  // A hold that stood beside the run stands for the node now, and keeps a new run from starting.
  if (life.holding) return isLegal(life.state, 'held') ? move(life, 'held', life.holding.message) : undefined;
  if (standing.retryBy && isLegal(life.state, STARTED_EVENT[run.kind])) await startRun(life, run.kind, { how: 'retry', by: standing.retryBy });
}

async function tellOfEnd(life: LifecycleContext, run: OpenRun, standing: RunOutcome): Promise<void> {
  await publish(life);
  const kind = standing.end === 'done' ? 'success' : standing.end === 'failed' ? 'danger' : 'info';
  const text = `run ${run.run} (${run.kind}): ${standing.end}${standing.failure ? `: ${standing.failure.message}. What to do: ${standing.failure.hint}` : ''}`;
  await tell(life, kind, text, run.run);
}
