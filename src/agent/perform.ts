/** One order from `started` to its report. Whatever happens inside becomes a report; nothing is thrown. */
import { errorText, isMetalflowError, MetalflowError } from '../domain/errors.js';
import type { Order, OrderReport } from '../contracts/order.js';
import type { Logger } from '../telemetry/log.js';
import type { AgentApi } from './api.js';
import { doAction } from './actions/index.js';
import type { ActionContext } from './actions/action.js';
import { startHeartbeat, type Pace, type StopReason } from './heartbeat.js';
import type { AgentMachine, JournalEntry } from '../contracts/agent-machine.js';
import type { Sleep } from './sleep.js';

export interface PerformDeps extends Pick<ActionContext, 'installCode' | 'ext4' | 'dispatcher'> {
  readonly api: AgentApi;
  readonly token: string;
  readonly machine: AgentMachine;
  readonly log: Logger;
  readonly now: () => Date;
  readonly sleep: Sleep;
  readonly pace: Pace;
  /** The agent's own end. */
  readonly signal: AbortSignal;
}

type End = StopReason | 'timed-out' | 'agent-ends';

const STOPPED: Readonly<Record<Exclude<End, 'timed-out'>, string>> = {
  stop: 'stopped: the order was cancelled or its run is over',
  revoked: 'stopped: the session token was revoked',
  gone: 'stopped: the plane no longer knows the order',
  'agent-ends': 'stopped: the agent was told to end',
};

/** How the action ended, as the plane wants to hear it. Details of unknown errors stay in the agent's log. */
function reportOf(order: Order, error: unknown, end: End | null): OrderReport {
  if (end === 'timed-out') return { result: 'timed-out', code: 'action_timed_out', message: errorText('action_timed_out', { action: order.title, seconds: order.timeoutSeconds }) };
  if (end) return { result: 'failed', code: 'action_failed', message: STOPPED[end] };
  const tail = (error instanceof Error ? error.message : String(error)).slice(0, 1000);
  const known = isMetalflowError(error) ? error : new MetalflowError('action_failed', { action: order.title, exit: 'none', tail });
  return { result: 'failed', code: known.code, message: known.message.slice(0, 4000) };
}

/**
 * Performs an order that was consumed. The journal has `started` before the first byte is touched.
 * The report tells the truth of this machine, also of an order that was stopped half-way.
 */
export async function perform(order: Order, deps: PerformDeps): Promise<OrderReport> {
  const { api, token, machine, log, sleep } = deps;
  const { orderId, action } = order;
  const disk = 'disk' in action ? action.disk.serial || action.disk.wwn : undefined;
  const note = (what: JournalEntry['what']): void => machine.journal({ at: deps.now().toISOString(), orderId, action: action.name, what, ...(disk !== undefined && { disk }) });

  const work = new AbortController();
  let end: End | null = null;
  const stop = (why: End): void => {
    if (work.signal.aborted) return;
    end = why;
    log.warn({ orderId, action: action.name, why }, 'stopping the work');
    work.abort(new Error(why));
  };
  const agentEnds = (): void => stop('agent-ends');
  deps.signal.addEventListener('abort', agentEnds);
  if (deps.signal.aborted) agentEnds();

  const done = new AbortController();
  const timeLimit = sleep(order.timeoutSeconds * 1000, done.signal).then(() => {
    if (!done.signal.aborted) stop('timed-out');
  });
  const heartbeat = startHeartbeat({ send: (progress) => api.progress(token, orderId, progress), onStop: stop, sleep, pace: deps.pace });
  let report: OrderReport;
  try {
    note('started');
    const { message, evidence } = await doAction(action, {
      machine, sleep, now: deps.now, signal: work.signal, installCode: deps.installCode, ext4: deps.ext4, dispatcher: deps.dispatcher,
      progress: (progress) => heartbeat.update(progress),
      fetchSeed: async () => {
        const answer = await api.seed(token, orderId);
        if (answer.kind === 'ok') return answer.value.files;
        const refused = answer.kind === 'unavailable' ? answer.why : answer.kind === 'empty' ? 'the plane has no seed for this order' : answer.message || answer.code;
        throw new MetalflowError('seed_invalid', { what: refused });
      },
    });
    note('done');
    report = { result: 'succeeded', message, evidence: { ...evidence } };
  } catch (error) {
    report = reportOf(order, error, end);
    log.error({ err: error, orderId, action: action.name, code: report.code }, 'the action failed');
    noteQuietly(note, end ? 'stopped' : 'failed', log);
  } finally {
    done.abort();
    deps.signal.removeEventListener('abort', agentEnds);
    await Promise.all([timeLimit, heartbeat.end()]);
  }
  return report;
}

/** The action is over; a full journal must not hide how it ended. */
function noteQuietly(note: (what: JournalEntry['what']) => void, what: JournalEntry['what'], log: Logger): void {
  try {
    note(what);
  } catch (error) {
    log.error({ err: error }, 'the journal cannot be written');
  }
}
