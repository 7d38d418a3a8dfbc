/** One order, from the ledger to its end. */
import { condition } from '@temporalio/workflow';
import { failure, isErrorCode, type Failure } from '../../domain/errors.js';
import type { OrderReport } from '../../contracts/order.js';
import type { OrderResult } from '../../contracts/store.js';
import type { ReadyAction } from '../../activities/orders.js';
import { longLived } from '../activities.js';
import { fenceLossOf, isCancellation } from '../failures.js';
import type { OrderView, RunContext } from '../run-context.js';

export type OrderEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** A person granted it again: the node is booted and attested anew first. */
  | { readonly kind: 'granted-again' }
  | { readonly kind: 'stop' };

export async function performOrder(run: RunContext, action: ReadyAction): Promise<OrderEnd> {
  const posted = await run.central(run.limits.arming, `order: ${describe(run, action)}`).postOrder({ ...run.ref, bootAttempt: run.attempt!.id, action, queueSeconds: run.limits.orderQueued, grantUnknown: run.regrants.get(action.title) ?? null });
  run.regrants.delete(action.title);
  const order: OrderView = { title: posted.grant > 1 ? `${action.title} (grant ${posted.grant})` : action.title, orderId: posted.orderId, state: 'offered' };
  run.orders.push(order);
  run.show(`the agent: ${describe(run, action)}`);
  let result = await awaitResult(run, action, order.orderId);
  for (;;) {
    order.state = result.kind === 'reported' ? result.report.result : result.kind;
    switch (result.kind) {
      case 'reported':
        return result.report.result === 'succeeded' ? { kind: 'succeeded' } : { kind: 'failed', failure: reportedFailure(action, result.report) };
      case 'timed-out':
        return { kind: 'failed', failure: failure('action_timed_out', { action: action.title, seconds: result.seconds }) };
      case 'not-taken':
        return { kind: 'failed', failure: failure('order_not_taken', { action: action.title, seconds: result.seconds }) };
      case 'cancelled':
        return run.stop ? { kind: 'stop' } : { kind: 'failed', failure: failure('action_failed', { action: action.title, exit: '?', tail: result.why }) };
      case 'unknown': {
        const resolved = await resolveUnknown(run, action, order);
        if ('end' in resolved) return resolved.end;
        result = resolved.result;
      }
    }
  }
}

/** What the Temporal page shows of it: `write-image talos-1.9 → disk S/N …`. */
function describe(run: RunContext, action: ReadyAction): string {
  const disk = 'disk' in action.action ? ` → disk S/N ${action.action.disk.serial || action.action.disk.wwn}` : '';
  const image = action.action.name === 'write-image' ? ` ${run.plan!.nodeClass ?? ''}` : '';
  return action.action.name === 'wipe-disk' ? action.title : `${action.title}${image}${disk}`;
}

/** The activity that mirrors the order. A retry of it only attaches again; it is given up when the store has no more word of it. */
async function awaitResult(run: RunContext, action: ReadyAction, orderId: string): Promise<OrderResult> {
  const closeSeconds = action.timeoutSeconds + run.limits.orderQueued + run.limits.planning;
  try {
    const result: OrderResult = await longLived({ heartbeatSeconds: run.limits.agentSilence, summary: describe(run, action), closeSeconds }).awaitOrder({ ...run.ref, orderId });
    if (isOrderResult(result)) return result;
  } catch (error) {
    if (isCancellation(error) || fenceLossOf(error)) throw error;
  }
  // Completed or failed by hand in Temporal: the ledger, not the hand, says what became of the order.
  const central = run.central(run.limits.arming, 'what became of the order?');
  const result = await central.orderResult({ ...run.ref, bootAttempt: run.attempt!.id, orderId });
  if (result) return result;
  await central.cancelOrders({ ...run.ref, why: 'its activity was ended by hand in Temporal' });
  return { kind: 'cancelled', why: 'its activity was ended by hand in Temporal' };
}

const isOrderResult = (value: unknown): value is OrderResult => typeof value === 'object' && value !== null && ['reported', 'unknown', 'timed-out', 'not-taken', 'cancelled'].includes((value as { kind?: string }).kind ?? '');

/** Taken and never reported: never done again by itself. A late report, or a person, resolves it. */
async function resolveUnknown(run: RunContext, action: ReadyAction, order: OrderView): Promise<{ end: OrderEnd } | { result: OrderResult }> {
  const { orderId } = order;
  const isReboot = action.action.name === 'reboot';
  const end = await run.hold(failure('outcome_unknown', { action: action.title }), () => condition(() => run.heard.reported.has(orderId) || (isReboot && run.heard.systemSeen)));
  if (end.kind === 'stop') return { end: { kind: 'stop' } };
  if (end.kind === 'by-itself') {
    if (isReboot && run.heard.systemSeen) return { end: { kind: 'succeeded' } };
    const result = await run.central(run.limits.arming, 'what became of the order?').orderResult({ ...run.ref, bootAttempt: run.attempt!.id, orderId });
    return { result: result ?? { kind: 'unknown', since: order.state } };
  }
  if (end.verb === 'retry') {
    run.regrants.set(action.title, end.input.by);
    order.state = 'granted again';
    return { end: { kind: 'granted-again' } };
  }
  await run.central(run.limits.arming, `${end.input.by} says that it was done`).resolveOrderAsDone({ ...run.ref, orderId, by: end.input.by });
  order.state = 'resolved as done';
  return { end: { kind: 'succeeded' } };
}

function reportedFailure(action: ReadyAction, report: OrderReport): Failure {
  if (report.code && isErrorCode(report.code)) return { ...failure(report.code, report.evidence), message: report.message || failure(report.code, report.evidence).message };
  if (report.result === 'timed-out') return failure('action_timed_out', { action: action.title, seconds: action.timeoutSeconds });
  return failure('action_failed', { action: action.title, exit: report.exit ?? '?', tail: report.message.slice(-500) });
}
