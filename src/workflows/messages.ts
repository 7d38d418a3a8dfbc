/** The definitions of signals, updates and queries, for handlers and for starters. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { SIGNALS, STATE_QUERY, VERBS, type LifecycleView, type OperatorVerb, type RunView, type VerbAnswer, type VerbInput } from '../contracts/messages.js';

/** Signals carry whatever was sent: the handler parses. */
export const signals = {
  deviceChanged: defineSignal<[unknown]>(SIGNALS.deviceChanged.name),
  bootSeen: defineSignal<[unknown]>(SIGNALS.bootSeen.name),
  attested: defineSignal<[unknown]>(SIGNALS.attested.name),
  agentSeen: defineSignal<[unknown]>(SIGNALS.agentSeen.name),
  systemSeen: defineSignal<[unknown]>(SIGNALS.systemSeen.name),
  orderReported: defineSignal<[unknown]>(SIGNALS.orderReported.name),
  stopAtSafePoint: defineSignal<[unknown]>(SIGNALS.stopAtSafePoint.name),
} as const;

export const verbs = Object.fromEntries(VERBS.map((verb) => [verb, defineUpdate<VerbAnswer, [VerbInput]>(verb)])) as { [verb in OperatorVerb]: ReturnType<typeof defineUpdate<VerbAnswer, [VerbInput]>> };

export const runState = defineQuery<RunView>(STATE_QUERY);
export const lifecycleState = defineQuery<LifecycleView>(STATE_QUERY);
