/** What a run listens to. Signals are parsed and, when they do not fit, ignored with a logged reason; updates say why not. */
import type { RawValue } from '@temporalio/common';
import { defaultPayloadConverter, log, setHandler, workflowInfo } from '@temporalio/workflow';
import type { z } from 'zod';
import { ERRORS } from '../domain/errors.js';
import { AgentSeen, Attested, BootSeen, DeviceChanged, OrderReported, RUN_VERBS, StopAtSafePoint, StopTakenBack, SystemSeen, VerbInput, type OperatorVerb } from '../contracts/messages.js';
import { issuesText } from '../contracts/primitives.js';
import { runState, signals, verbs } from './messages.js';
import type { RunContext } from './run-context.js';

export function parsedSignal<S extends z.ZodType>(name: string, schema: S, take: (value: z.infer<S>) => void): (raw?: RawValue) => void {
  const ignore = (why: string): void => log.warn('a signal that does not fit is ignored', { signal: name, why });
  return (raw) => {
    let payload: unknown;
    try {
      payload = raw && defaultPayloadConverter.fromPayload(raw.payload);
    } catch {
      return ignore('its payload cannot be decoded');
    }
    const parsed = schema.safeParse(payload ?? {});
    if (parsed.success) take(parsed.data);
    else ignore(issuesText(parsed.error));
  };
}

export function listenForRun(run: RunContext): void {
  const { heard } = run;
  setHandler(runState, () => run.view());
  setHandler(signals.deviceChanged, parsedSignal('deviceChanged', DeviceChanged, () => void heard.deviceChanges++));
  setHandler(signals.bootSeen, parsedSignal('bootSeen', BootSeen, ({ bootAttempt }) => void heard.bootSeen.add(bootAttempt)));
  setHandler(signals.agentSeen, parsedSignal('agentSeen', AgentSeen, ({ bootAttempt }) => void heard.agentSeen.add(bootAttempt)));
  setHandler(signals.attested, parsedSignal('attested', Attested, ({ bootAttempt, accepted, reason }) => {
    if (!bootAttempt) return;
    if (accepted) heard.attested.add(bootAttempt);
    else heard.refusals.set(bootAttempt, reason ?? 'refused');
  }));
  setHandler(signals.systemSeen, parsedSignal('systemSeen', SystemSeen, (seen) => {
    // Where the class asks for phone_home, a fetched seed is not yet the system's own word.
    const isEnough = run.plan?.confirmBy !== 'phone-home' || seen.how === 'phone-home';
    if (seen.run === run.input.run && isEnough) heard.systemSeen = true;
  }));
  setHandler(signals.orderReported, parsedSignal('orderReported', OrderReported, ({ orderId }) => void heard.reported.add(orderId)));
  setHandler(signals.stopAtSafePoint, parsedSignal('stopAtSafePoint', StopAtSafePoint, (stop) => run.askToStop({ ...stop, runId: null })));
  setHandler(signals.stopTakenBack, parsedSignal('stopTakenBack', StopTakenBack, ({ request }) => run.takeBackStop(request)));

  for (const verb of RUN_VERBS) {
    setHandler(verbs[verb], (input) => say(run, verb, VerbInput.parse(input)), { validator: (input) => refuseUnlessFits(run, verb, input) });
  }
}

function say(run: RunContext, verb: OperatorVerb, input: VerbInput): { accepted: true; text: string } {
  switch (verb) {
    case 'cancel':
      run.askToStop({ by: input.by, request: null, runId: input.runId! });
      return { accepted: true, text: 'the run stops at its next safe point' };
    case 'hold':
      run.holdAsked = input;
      return { accepted: true, text: 'the run holds at its next safe point' };
    default:
      run.said = { verb, input };
      return { accepted: true, text: `the run goes on (${verb})` };
  }
}

/** A refused update leaves no trace in the history; its error says why. */
function refuseUnlessFits(run: RunContext, verb: OperatorVerb, raw: VerbInput): void {
  const parsed = VerbInput.safeParse(raw);
  if (!parsed.success) throw new Error(`verb_refused: ${issuesText(parsed.error)}`);
  const input = parsed.data;
  // Reset applies updates again; one that was meant for the former Temporal run must not move this one. (Only here, where nothing is
  // replayed: before a reset's point the history was written under another run id.)
  const { runId } = workflowInfo();
  if (input.runId !== runId) throw new Error(`verb_refused: runId must be ${runId}, the Temporal run this is meant for`);
  if (verb === 'cancel' || verb === 'hold') return;
  if (!run.holding) throw new Error('verb_refused: the run is not held');
  const retires = run.input.kind === 'retire';
  if (input.attestRemoved && (verb !== 'approve' || !retires)) throw new Error('verb_refused: attestRemoved goes with `approve`, of a retirement');
  const fits = verbsOf(run.holding.code, retires);
  if (!fits.includes(verb)) throw new Error(`verb_refused: ${run.holding.code} is ended by ${fits.join(' or ')}`);
  if (verb === 'approve' && !input.attestRemoved && run.holding.code !== 'bmc_uuid_unreadable') throw new Error('verb_refused: there is nothing to approve but that the machine is gone: say attestRemoved');
  if (run.holding.code === 'outcome_unknown' && verb === 'resume' && !input.done) throw new Error('verb_refused: say `resume --done` when the order was done, or `retry` to grant it again');
}

/** Which verbs end this hold. */
function verbsOf(code: keyof typeof ERRORS, retires: boolean): OperatorVerb[] {
  const { verb } = ERRORS[code];
  const own: OperatorVerb[] = verb === 'approve' || verb === 'retry' || verb === 'resume' ? [verb] : ['resume'];
  if (code === 'outcome_unknown' || code === 'seed_not_fetched') own.push('resume');
  // A retirement whose BMC is dead may be closed by an approver.
  if (retires) own.push('approve');
  return own;
}
