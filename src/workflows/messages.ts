/** The definitions of signals, updates and queries, for handlers and for starters. */
import { rawValueTypeInfo, type RawValue } from '@temporalio/common';
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { SIGNALS, STATE_QUERY, VERBS, type LifecycleView, type OperatorVerb, type RunView, type VerbAnswer, type VerbInput } from '../contracts/messages.js';

/**
 * Signals carry whatever was sent, so a handler gets the payload as it came, decodes it and parses it: one that cannot be decoded
 * would else fail the workflow's task again and again, and nothing would ever move the workflow.
 */
const signal = (name: string) => defineSignal<[RawValue?]>(name, { typeInfo: { inputTypes: [rawValueTypeInfo] } });
export const signals = {
  deviceChanged: signal(SIGNALS.deviceChanged.name),
  bootSeen: signal(SIGNALS.bootSeen.name),
  attested: signal(SIGNALS.attested.name),
  agentSeen: signal(SIGNALS.agentSeen.name),
  systemSeen: signal(SIGNALS.systemSeen.name),
  orderReported: signal(SIGNALS.orderReported.name),
  stopAtSafePoint: signal(SIGNALS.stopAtSafePoint.name),
  stopTakenBack: signal(SIGNALS.stopTakenBack.name),
  powerSeen: signal(SIGNALS.powerSeen.name),
} as const;

export const verbs = Object.fromEntries(VERBS.map((verb) => [verb, defineUpdate<VerbAnswer, [VerbInput]>(verb)])) as { [verb in OperatorVerb]: ReturnType<typeof defineUpdate<VerbAnswer, [VerbInput]>> };

export const runState = defineQuery<RunView>(STATE_QUERY);
export const lifecycleState = defineQuery<LifecycleView>(STATE_QUERY);
