/** What a run has in mind while it goes through its phases: deterministic, rebuilt by replay, never trusted after a reset. */
import { CancellationScope, condition, isCancellation, log } from '@temporalio/workflow';
import { ERRORS, failure, namesMachine, type Failure } from '../domain/errors.js';
import type { PowerWord } from '../domain/power.js';
import type { Request, RunPhase } from '../domain/runs.js';
import type { HoldView, OperatorVerb, RunInput, RunOutcome, RunView, VerbInput } from '../contracts/messages.js';
import type { RunPlan } from '../contracts/plan.js';
import type { ReadyAction } from '../activities/orders.js';
import { longLived, onSite, quick, summarised } from './activities.js';
import { failureOf } from './failures.js';
import { showRun } from './run-display.js';

export interface OrderView {
  readonly title: string;
  readonly orderId: string;
  state: string;
}

export type HoldEnd =
  | { readonly kind: 'verb'; readonly verb: OperatorVerb; readonly input: VerbInput }
  /** What the hold waited for came by itself. */
  | { readonly kind: 'by-itself' }
  | { readonly kind: 'stop' };

export interface Stop {
  readonly by: string;
  /** What NetBox asks for instead; null when a person, or a device that is gone, ends the run. */
  readonly request: Request | null;
  /** The Temporal run it was said to; null from a signal, which does not say. */
  readonly runId: string | null;
  /** An approver said that the machine is gone; the hold that it ended stands as the failure. */
  readonly removed?: Failure;
}

export type Waited = 'seen' | 'limit' | 'stop';

export class RunContext {
  plan: RunPlan | null = null;
  phase: RunPhase = 'planning';
  since = Date.now();
  waitsFor = '';
  /** How it ended; null while it goes on. */
  outcome: RunOutcome | null = null;
  /** The Temporal run id that holds the fence, as the store said. */
  fence: string | null = null;
  /** Counts power cycles, so that each request is an intent of its own. */
  cycle = 0;
  attempt: { readonly id: string; readonly number: number } | null = null;
  /** Boots that never came, or never attested, in this fence. */
  bootsNotSeen = 0;
  power: PowerWord = 'unknown';
  proof: 'tpm' | 'unproven' | null = null;
  disk: string | null = null;
  actions: readonly ReadyAction[] = [];
  nextAction = 0;
  readonly orders: OrderView[] = [];
  /** What the machine behind the BMC was compared with; it gets no command by any other pin. */
  compared: Pick<RunPlan, 'bmc' | 'systemUuid'> | null = null;
  /** A person ended a hold that is mended in NetBox: the pin is renewed before the next command. */
  pinInDoubt = false;
  destroyed = false;
  holding: HoldView | null = null;
  holdAsked: VerbInput | null = null;
  said: { readonly verb: OperatorVerb; readonly input: VerbInput } | null = null;
  stop: Stop | null = null;
  /** The request was taken from NetBox, or came from no field. */
  taken: boolean;
  readonly heard = { bootSeen: new Set<string>(), attested: new Set<string>(), refusals: new Map<string, string>(), agentSeen: new Set<string>(), systemSeen: false, reported: new Set<string>(), deviceChanges: 0 };
  /** Unknown orders a person said to grant again: title → who. */
  readonly regrants = new Map<string, string>();
  #keeper: { readonly scope: CancellationScope; error: unknown } | null = null;
  /** Activities that keep, or kept, a permission and have not ended. */
  #keeping = 0;

  constructor(readonly input: RunInput) {
    this.taken = input.asked.how !== 'netbox';
  }

  get ref(): { deviceId: string; run: number } {
    return { deviceId: this.input.deviceId, run: this.input.run };
  }
  get limits(): RunInput['limits'] {
    return this.input.limits;
  }

  /** Activities that ask the store or NetBox, within the phase's limit. */
  central(limitSeconds: number, summary?: string): ReturnType<typeof quick> {
    return quick(Math.max(limitSeconds, this.limits.activityTry), this.limits.activityTry, summary);
  }
  site(limitSeconds: number | null, summary: string): ReturnType<typeof onSite> {
    return onSite(this.input.site, this.limits, { limitSeconds, summary });
  }

  /** Its page and its place in lists say how it ended. */
  end(outcome: RunOutcome): RunOutcome {
    this.outcome = outcome;
    this.since = Date.now();
    this.show('nothing: the run has ended');
    return outcome;
  }

  show(waitsFor: string): void {
    this.waitsFor = waitsFor;
    showRun(this);
  }

  /** Waits for something heard, a stop, or the limit; a permission that could not be kept ends the wait with its error. */
  async until(seen: () => boolean, limitSeconds: number, waitsFor: string): Promise<Waited> {
    this.show(waitsFor);
    const came = await condition(() => seen() || this.stop !== null || this.#keeper?.error != null, `${limitSeconds}s`, summarised(`limit of the wait for ${waitsFor}`));
    if (this.#keeper?.error != null) throw this.#keeper.error;
    if (seen()) return 'seen';
    return came ? 'stop' : 'limit';
  }

  /** Holds the run until its verb is said. A hold has no limit; `byItself` may end it. */
  async hold(why: Failure, byItself: (() => Promise<unknown>) | null = null): Promise<HoldEnd> {
    const noting = (summary: string): ReturnType<typeof quick> => this.central(this.limits.taking, summary);
    this.holding = { ...why, since: new Date().toISOString(), verb: ERRORS[why.code].verb };
    this.said = null;
    let cameByItself = false;
    const watch = new CancellationScope();
    const watching = byItself ? watch.run(async () => void (await byItself(), (cameByItself = true))).catch((error: unknown) => { if (!isCancellation(error)) log.warn('the watch of a hold failed', { error: String(error) }); }) : Promise.resolve();
    try {
      this.show(`a person: ${why.hint}`);
      await noting(`held: ${why.code}`).noteHold({ ...this.ref, hold: why, tellNetbox: true });
      const isOver = (): boolean => this.said !== null || this.stop !== null || cameByItself;
      if (!(await condition(isOver, `${this.limits.holdAlert}s`, { summary: `alert of the hold ${why.code}` }))) {
        // A hold has no limit, but it is never silent.
        await noting(`still held: ${why.code}`).alertHold({ ...this.ref, hold: why, seconds: this.limits.holdAlert });
        await condition(isOver);
      }
    } finally {
      watch.cancel();
      this.holding = null;
    }
    await watching;
    await noting(`no longer held: ${why.code}`).noteHold({ ...this.ref, hold: null, tellNetbox: false });
    const said = this.said as { readonly verb: OperatorVerb; readonly input: VerbInput } | null;
    this.said = null;
    // What was approved is what was found where the pin leads.
    if (namesMachine(why.code) && (said ? said.verb !== 'approve' : why.code === 'device_invalid')) this.pinInDoubt = true;
    if (said) {
      // For a node without a BMC the person's word stands in for what a BMC would have read: the journal keeps what it was given for.
      const confirms = why.code === 'bmc_manual_task' && said.verb === 'resume' ? ` (says that it is done: ${String(why.details?.['task']).split(', then:')[0]})` : '';
      await noting(`${said.verb} of ${said.input.by}`).noteVerb({ ...this.ref, text: `${said.verb}${said.input.done ? ' --done' : ''}${said.input.reason ? `: ${said.input.reason}` : ''}${confirms}`, by: said.input.by });
      if (said.verb === 'approve' && said.input.attestRemoved) {
        this.stop = { by: said.input.by, request: null, runId: said.input.runId ?? null, removed: why };
        return { kind: 'stop' };
      }
      return { kind: 'verb', verb: said.verb, input: said.input };
    }
    return cameByItself ? { kind: 'by-itself' } : { kind: 'stop' };
  }

  /** Fixed in NetBox, it goes on by itself. */
  async holdForDevice(why: Failure): Promise<HoldEnd> {
    const changesSeen = this.heard.deviceChanges;
    return this.hold(why, () => condition(() => this.heard.deviceChanges > changesSeen));
  }

  /** The first word counts; but one that nothing in NetBox can take back replaces one that could be. */
  askToStop(stop: Stop): void {
    if (!this.stop || (this.stop.request !== null && stop.request === null)) this.stop = stop;
    this.show(this.waitsFor);
  }

  takeBackStop(request: Request): void {
    if (this.stop?.request === request) this.stop = null;
    this.show(this.waitsFor);
  }

  /** A person asked for a hold: honoured at the next safe point. */
  async holdIfAsked(): Promise<void> {
    const asked = this.holdAsked;
    if (!asked) return;
    this.holdAsked = null;
    await this.hold(failure('held_by_person', { by: asked.by, reason: asked.reason ?? 'no reason given' }));
  }

  /** The run was reset: only what was said to its present self counts. */
  forgetWhatWasSaidBefore(fence: string): void {
    if (this.stop?.runId !== fence) this.stop = null;
    if (this.said?.input.runId !== fence) this.said = null;
    if (this.holdAsked?.runId !== fence) this.holdAsked = null;
  }

  /** Keeps the netboot permission leased in the background until `releasePermission`. */
  keepPermission(bootAttempt: string): void {
    const scope = new CancellationScope();
    const keeper = { scope, error: null as unknown };
    this.#keeper = keeper;
    const { keepPermission } = longLived({ heartbeatSeconds: Math.max(15, this.limits.permissionRenewal), summary: `netboot permission for boot attempt ${this.attempt?.number ?? '?'}`, endsByItself: true });
    const kept = scope.run(() => keepPermission({ ...this.ref, bootAttempt, leaseSeconds: this.limits.permissionLease, everySeconds: this.limits.permissionRenewal }));
    this.#keeping++;
    kept.catch((error: unknown) => {
      if (!isCancellation(error)) keeper.error = error;
    }).finally(() => void this.#keeping--);
  }

  releasePermission(): void {
    this.#keeper?.scope.cancel();
    this.#keeper = null;
  }

  /** Lets the background work end: a run that closed before would show it as pending for ever. */
  async tidyUp(): Promise<void> {
    this.releasePermission();
    await condition(() => this.#keeping === 0, `${this.limits.activityTry}s`, { summary: 'limit of the wait for the keeping of the permission to end' });
  }

  /** Everything that belonged to a boot is forgotten; the next one starts clean. */
  forgetBoot(): void {
    this.releasePermission();
    this.attempt = null;
    this.actions = [];
    this.nextAction = 0;
    this.proof = null;
    for (const order of this.orders) if (order.state === 'offered') order.state = 'void';
  }

  failureOf(error: unknown): Failure {
    return failureOf(error, this.input.site);
  }

  view(): RunView {
    return {
      ...this.ref, node: this.input.nodeName, kind: this.input.kind, phase: this.phase, since: new Date(this.since).toISOString(), waitsFor: this.waitsFor, hold: this.holding,
      bootAttempt: this.attempt?.id ?? null, bootAttempts: this.attempt?.number ?? 0, power: this.power, proof: this.proof, disk: this.disk,
      orders: this.orders.map(({ title, state, orderId }) => ({ title, state, orderId })), stopAsked: this.stop ? `${this.stop.by}${this.stop.request ? ` for ${this.stop.request}` : ''}` : null, fence: this.fence,
    };
  }
}
