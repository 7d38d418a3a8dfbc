/** What a Bmc method asks of an AMT: classes read and enumerated, methods called, all within one limit. */
import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Logger } from '../../telemetry/log.js';
import { readAnswer } from './answer.js';
import type { Timeouts } from '../http-once.js';
import { enumerateEnvelope, getEnvelope, pullEnvelope, type DrawMessageId } from './envelope.js';
import type { ResourceName } from './names.js';
import { ok, problem, type Outcome } from '../problem.js';
import { returnValueRow, type MethodName } from './return-values.js';
import { EnumerateBody, methodBody, pullBody } from './shapes.js';
import type { Transport } from './transport.js';

export interface Conversation {
  readonly drawMessageId: DrawMessageId;
  /** One limit for all that a method does; nothing of it is left when it returns. */
  within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  ask<T>(step: string, envelope: string, kind: 'read' | 'command', shape: z.ZodType<T>, signal: AbortSignal): Promise<Outcome<T>>;
  /** One instance. @param selectors which, where there are several */
  read<T>(resource: ResourceName, shape: z.ZodType<T>, signal: AbortSignal, selectors?: Readonly<Record<string, string>>): Promise<Outcome<T>>;
  /** Every instance; none of a class that this firmware does not have. */
  readAll<T>(resource: ResourceName, item: z.ZodType<T>, signal: AbortSignal): Promise<Outcome<T[]>>;
  /** One method call; a ReturnValue other than a yes is a problem. */
  invoke(method: MethodName, envelope: string, signal: AbortSignal): Promise<Outcome<void>>;
  close(): void;
}

/** A BMC that never comes to an end is not followed further. */
const MOST_PULLS = 20;

export function createConversation(deps: { transport: Transport; timeouts: Timeouts; address: string; log: Logger; drawMessageId?: DrawMessageId }): Conversation {
  const { transport, timeouts, address, log } = deps;
  const drawMessageId = deps.drawMessageId ?? ((): string => `uuid:${randomUUID()}`);
  const closed = new AbortController();

  const conversation: Conversation = {
    drawMessageId,

    async within(work) {
      const deadline = new AbortController();
      const timer = setTimeout(() => deadline.abort(), timeouts.methodMs);
      try {
        return await work(AbortSignal.any([closed.signal, deadline.signal]));
      } finally {
        clearTimeout(timer);
      }
    },

    async ask(step, envelope, kind, shape, signal) {
      const answer = await transport.post(envelope, kind, signal);
      const outcome = answer.kind === 'ok' ? readAnswer(answer.value, step, shape) : answer;
      log.debug({ bmc: address, step, ...(outcome.kind === 'problem' && { code: outcome.problem.code, why: outcome.problem.why }) }, 'asked the BMC');
      return outcome;
    },

    read: (resource, shape, signal, selectors) => conversation.ask(`Get ${resource}`, getEnvelope(resource, drawMessageId(), selectors), 'read', shape, signal),

    async readAll<T>(resource: ResourceName, item: z.ZodType<T>, signal: AbortSignal) {
      const opened = await conversation.ask(`Enumerate ${resource}`, enumerateEnvelope(resource, drawMessageId()), 'read', EnumerateBody, signal);
      if (opened.kind === 'problem') return opened;
      const items: T[] = [];
      let context: string | null = opened.value.EnumerateResponse.EnumerationContext;
      for (let pulls = 0; context !== null; pulls += 1) {
        if (pulls === MOST_PULLS) return problem('bmc_answer_invalid', `${resource}: no end after ${MOST_PULLS} pulls`, 'none');
        const envelope = pullEnvelope(resource, context, drawMessageId());
        const pulled: Outcome<{ items: T[]; next: string | null }> = await conversation.ask(`Pull ${resource}`, envelope, 'read', pullBody(resource, item), signal);
        if (pulled.kind === 'problem') return pulled;
        items.push(...pulled.value.items);
        context = pulled.value.next;
      }
      return ok(items);
    },

    async invoke(method, envelope, signal) {
      const answer = await conversation.ask(method, envelope, 'command', methodBody(method), signal);
      if (answer.kind === 'problem') return answer;
      const { kind, meaning } = returnValueRow(method, answer.value);
      if (kind === 'accepted') return ok(undefined);
      const value = String(answer.value);
      return problem('bmc_refused', `${method}: ReturnValue ${value} (${meaning})`, kind === 'unknown' ? 'possible' : 'none', { step: method, value, meaning });
    },

    close: () => closed.abort(),
  };
  return conversation;
}
