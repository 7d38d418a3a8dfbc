/** What a lifecycle has in mind. The store holds what must survive it. */
import { upsertSearchAttributes, setCurrentDetails } from '@temporalio/workflow';
import { ERRORS, type Failure } from '../domain/errors.js';
import { DEFAULT_LIMITS } from '../domain/limits.js';
import type { PowerWord } from '../domain/power.js';
import type { Request, RunKind } from '../domain/runs.js';
import { STATES, type LifecycleState } from '../domain/states.js';
import type { EndedRun, HoldView, LifecycleCarried, LifecycleInput, LifecycleView, OperatorVerb, VerbInput, WatchedEnd } from '../contracts/messages.js';
import type { DeviceRecord } from '../contracts/store.js';
import type { CentralActivities } from '../activities/index.js';
import { netboxOfLifecycle, ofLifecycle, runWatcher } from './activities.js';
import { attribute, instant, toEndHold, toMend } from './run-display.js';

export type OpenRun = NonNullable<DeviceRecord['openRun']>;

export class LifecycleContext {
  readonly deviceId: string;
  name: string;
  site = '';
  nodeClass: string | null = null;
  state: LifecycleState = 'planned';
  since = Date.now();
  previousState: LifecycleState | null = null;
  adopted = false;
  holding: HoldView | null = null;
  openRun: OpenRun | null = null;
  lastRun: DeviceRecord['lastRun'] = null;
  nextRequest: Request | null = null;
  /** The run that was asked to stop, and what for, so that it is asked once; null is a person's cancel, or a device that is gone. */
  stopAsked: { readonly run: number; readonly request: Request | null } | null = null;
  /** What was told to people last, so that it is told once. */
  told: string | null;
  /** The last attestation of a node that waits without a run. */
  waitingNode: { readonly attestationId: string } | null = null;
  /** That it waits was told; until a run takes it, it is no news. */
  waitTold: boolean;
  /** The store was read; until then no verb can be judged. */
  takenUp = false;
  /** Of the history before this one: a query between the two must not read as a node without a run. */
  private readonly shownBefore: LifecycleView | null;
  wake: boolean;
  /** Of this run, whichever is open by now. */
  runEnd: { readonly run: number; readonly end: WatchedEnd } | null = null;
  watching: number | null = null;
  readonly said: { readonly verb: OperatorVerb; readonly input: VerbInput }[] = [];
  /** The state's status is not in NetBox yet: it is written before anything else is done. */
  unpublished = false;
  /** As the store had it, or the power watch said since; null in a history that was begun before it was asked. */
  power: PowerWord | null = null;
  /** Written with its end: what still asks for the same is this run's, and starts no other. */
  endedRun: EndedRun | null = null;
  /** To be shown; nothing is judged by it. */
  powerNews = false;
  /** NetBox could not be read: look again after a while. */
  lookAgain = false;
  /** Of one activity; the house says it at the take-up. */
  trySeconds: number = DEFAULT_LIMITS.activityTry;

  constructor(input: LifecycleInput) {
    this.deviceId = input.deviceId;
    this.name = `device ${input.deviceId}`;
    this.wake = input.carried?.pendingWake ?? true;
    this.told = input.carried?.told ?? null;
    this.waitTold = input.carried?.waitTold ?? false;
    this.shownBefore = input.carried?.shown ?? null;
    const attested = input.carried?.pendingAttestations.at(-1);
    if (attested) this.waitingNode = { attestationId: attested.attestationId };
  }

  /** Activities that ask the store or Temporal. */
  get central(): CentralActivities {
    return ofLifecycle(this.trySeconds);
  }
  get netbox(): CentralActivities {
    return netboxOfLifecycle(this.trySeconds);
  }
  get watcher(): CentralActivities {
    return runWatcher(this.trySeconds);
  }

  hasWork(): boolean {
    return this.wake || this.runEnd !== null || this.said.length > 0;
  }

  carried(): LifecycleCarried {
    return { pendingWake: this.wake || this.lookAgain, told: this.told, waitTold: this.waitTold, shown: this.view(), pendingAttestations: this.waitingNode ? [{ bootAttempt: null, attestationId: this.waitingNode.attestationId, accepted: true, reason: null }] : [] };
  }

  recall(record: DeviceRecord): void {
    this.name = record.name;
    this.site = record.site;
    this.nodeClass = record.nodeClass;
    this.state = record.state;
    this.since = Date.parse(record.stateSince);
    this.previousState = record.previousState;
    this.adopted = record.adopted;
    this.openRun = record.openRun;
    this.lastRun = record.lastRun;
    this.nextRequest = record.nextRequest;
    this.power = record.power ?? null;
    this.holding = record.hold ? this.holdView(record.hold) : null;
  }

  holdView(why: Failure): HoldView {
    return { ...why, since: new Date().toISOString(), verb: ERRORS[why.code].verb };
  }

  get waitsFor(): string {
    if (this.holding) return `a person: ${this.holding.hint}`;
    if (this.openRun) return `run ${this.openRun.run} (${this.openRun.kind})`;
    return STATES[this.state].waysOut === 'none' ? 'nothing: it has ended' : STATES[this.state].waysOut;
  }

  view(): LifecycleView {
    if (!this.takenUp && this.shownBefore) return this.shownBefore;
    const last = this.lastRun;
    return {
      deviceId: this.deviceId, node: this.name, state: this.state, since: new Date(this.since).toISOString(), adopted: this.adopted, nodeClass: this.nodeClass, site: this.site,
      openRun: this.openRun, lastRun: last && { run: last.run, kind: last.kind, end: last.outcome.end, failure: last.outcome.failure, at: last.at },
      nextRequest: this.nextRequest, power: this.power, hold: this.holding, waitsFor: this.waitsFor,
    };
  }

  show(): void {
    setCurrentDetails(lifecycleDetails(this));
    upsertSearchAttributes([
      { key: attribute.node, value: this.name },
      { key: attribute.device, value: this.deviceId },
      { key: attribute.state, value: this.holding ? 'held' : this.state },
      { key: attribute.class, value: this.nodeClass ?? 'none' },
      { key: attribute.site, value: this.site || 'unknown' },
      ...(this.power ? [{ key: attribute.power, value: this.power }] : []),
    ]);
  }

  runKind(): RunKind | null {
    return this.openRun?.kind ?? null;
  }
}

function toDo({ holding, openRun, state, lastRun, name }: LifecycleContext): string {
  if (holding) return toEndHold(holding, name);
  if (openRun) return 'see the open run; it says what it waits for';
  if (state !== 'failed') return 'nothing';
  return lastRun ? toMend(lastRun.outcome, name) : `ask for what it is to become (\`metalflow node provision ${name}\`)`;
}

/** Markdown: state, since when, what it waits for, what to do. */
export function lifecycleDetails(life: LifecycleContext): string {
  const { holding: hold, lastRun } = life;
  const lines = [
    `### ${life.name} (NetBox device ${life.deviceId})`,
    hold ? `**held** (${life.state}) since ${instant(hold.since)}: \`${hold.code}\` ${hold.message}` : `**${life.state}** since ${instant(life.since)}: ${STATES[life.state].meaning}${life.adopted ? ' (adopted: metalflow did not install it)' : ''}`,
    '',
    `**waits for:** ${hold ? 'a person' : life.waitsFor}`,
    `**to do:** ${toDo(life)}`,
  ];
  if (life.power) lines.push('', `**power:** ${life.power}`);
  if (life.openRun) lines.push('', `**open run:** \`${life.openRun.workflowId}\` (${life.openRun.kind})`);
  if (life.nextRequest) lines.push('', `**next request:** ${life.nextRequest}`);
  if (lastRun) lines.push('', `**last run:** ${lastRun.run} (${lastRun.kind}) ${lastRun.outcome.end}${lastRun.outcome.failure ? `: \`${lastRun.outcome.failure.code}\` ${lastRun.outcome.failure.message}` : ''}`);
  return lines.join('\n');
}
