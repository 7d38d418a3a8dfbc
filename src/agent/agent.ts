/**
 * The agent: attest, ask for an order, take it, do it, report it, ask again. It ends when it is told to, or with the
 * machine; never because of an error (tink#458).
 *
 * What makes "once" true on this side:
 * - Consuming is the only permission. A consume whose answer got lost is simply asked again: the plane gives the same session
 *   the same answer, and nothing was begun.
 * - The journal has `started` before the first byte. An order with that mark is never begun again, not by this process and
 *   not by one that was started after it was killed: that one attests anew, its session owns no consumed order, and should the
 *   plane offer one all the same, it is left alone until the plane's deadline decides (outcome_unknown).
 * - An order that this process finished and that comes again only gets its report again.
 */
import type { Dispatcher } from 'undici';
import type { AttestationReport } from '../contracts/agent-api.js';
import type { Order, OrderReport } from '../contracts/order.js';
import type { Logger } from '../telemetry/log.js';
import { createAgentApi, type Answer } from './api.js';
import { attest, DEFAULT_TRIES, type Session, type Tries } from './attest.js';
import { createExt4Files, type Ext4Files } from './ext4-files.js';
import { DEFAULT_PACE, type Pace } from './heartbeat.js';
import type { AgentMachine } from '../contracts/agent-machine.js';
import { perform } from './perform.js';
import { growingDelay, realSleep, type Sleep } from './sleep.js';

export interface AgentDeps {
  /** Base URL of the agent plane. */
  readonly api: string;
  readonly machine: AgentMachine;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly now?: () => Date;
  readonly sleep?: Sleep;
  readonly tries?: Partial<Tries>;
  readonly pace?: Partial<Pace>;
  /** PEM of the authority of the plane's certificate. */
  readonly ca?: string;
  /** Of one request to the plane. */
  readonly requestTimeoutMs?: number;
  /** Seconds that the plane is asked to hold a request for an order. */
  readonly waitSeconds?: number;
  readonly agent?: AttestationReport['agent'];
  readonly ext4?: Ext4Files;
  readonly dispatcher?: Dispatcher;
}

/** Why the agent ended. */
export type AgentEnd = 'told-to' | 'rebooting';

/** Finished orders whose reports are kept for a repeat; a run has a handful. */
const REMEMBERED = 50;
/** Least time between two questions, whatever the plane answers. */
const LEAST_PAUSE_MS = 1000;
/** While the plane offers an order that must not be begun again. */
const LEFT_ALONE_MS = 5000;

type Step = 'go-on' | 'attest-again' | 'rebooting';

/**
 * Runs the agent until the signal aborts or the machine restarts. Rejects never.
 * Times in milliseconds unless named otherwise.
 */
export async function runAgent(deps: AgentDeps): Promise<AgentEnd> {
  const { machine, log, signal, now = () => new Date(), sleep = realSleep } = deps;
  const agent = deps.agent ?? { name: 'metalflow-agent', version: '0' };
  const tries: Tries = { ...DEFAULT_TRIES, ...deps.tries };
  const pace: Pace = { ...DEFAULT_PACE, ...deps.pace };
  const waitSeconds = deps.waitSeconds ?? 30;
  const ext4 = deps.ext4 ?? createExt4Files();
  const api = createAgentApi({ base: deps.api, ca: deps.ca, signal, timeoutMs: deps.requestTimeoutMs });
  const reports = new Map<string, OrderReport>();
  const backoff = growingDelay(LEAST_PAUSE_MS, 30_000);
  let session: Session | null = null;

  const logIn = async (): Promise<Session | null> => attest({ api, machine, agent, log, sleep, signal, tries });

  /** The token of a report may have been revoked while the work was done: then one more attestation, and once more the report. */
  const deliver = async (orderId: string, report: OrderReport, limitMs = Infinity): Promise<'delivered' | 'refused' | 'gave-up'> => {
    const delay = growingDelay(500, 30_000);
    let attested = false;
    for (let waitedMs = 0; session && !signal.aborted; ) {
      const answer: Answer<unknown> = await api.reportOrder(session.token, orderId, report);
      if (answer.kind === 'ok' || answer.kind === 'empty') return 'delivered';
      if (answer.kind === 'refused' || (answer.kind === 'unauthorized' && attested)) {
        log.warn({ orderId, ...answer }, 'the plane does not want the report; it is not sent again');
        return 'refused';
      }
      if (answer.kind === 'unauthorized') {
        attested = true;
        session = await logIn();
        continue;
      }
      const wait = delay.next();
      log.warn({ orderId, why: answer.why, nextInMs: wait }, 'the report did not get through; it is sent again');
      await sleep(wait, signal);
      waitedMs += wait;
      if (waitedMs >= limitMs) return 'gave-up';
    }
    return 'gave-up';
  };

  /** Said before it is done, for afterwards nobody is here to say it. What counts is that the node is seen again (G3). */
  const restart = async (order: Order): Promise<Step> => {
    const { orderId } = order;
    machine.journal({ at: now().toISOString(), orderId, action: 'reboot', what: 'started' });
    const report: OrderReport = { result: 'succeeded', message: 'restarting now' };
    reports.set(orderId, report);
    const outcome = await deliver(orderId, report, order.timeoutSeconds * 1000);
    if (outcome === 'refused' || signal.aborted) return 'go-on';
    // An unreachable plane is no reason to stay: netboot permission was withdrawn before this order was handed out.
    await machine.reboot();
    return 'rebooting';
  };

  /**
   * Asked until it is answered: behind an answer that got lost the order may be taken, and one that is taken is offered no more.
   * The plane gives the same session the same answer again.
   */
  const consume = async (orderId: string, token: string): Promise<Awaited<ReturnType<typeof api.consume>>> => {
    for (;;) {
      const answer = await api.consume(token, orderId);
      if (answer.kind !== 'unavailable' || signal.aborted) return answer;
      const wait = backoff.next();
      log.warn({ orderId, why: answer.why, nextInMs: wait }, 'taking the order was not answered; asking again');
      await sleep(wait, signal);
    }
  };

  const take = async (order: Order, token: string, installCode: string | null): Promise<Step> => {
    const { orderId, action, title } = order;
    const finished = reports.get(orderId);
    if (finished) {
      log.info({ orderId }, 'this order was finished here; its report is sent again');
      await deliver(orderId, finished);
      await sleep(LEAST_PAUSE_MS, signal);
      return 'go-on';
    }
    if (machine.wasStarted(orderId)) {
      log.error({ orderId, title }, 'this order was begun before this agent was started; it is not done again');
      await sleep(LEFT_ALONE_MS, signal);
      return 'go-on';
    }
    const consumed = await consume(orderId, token);
    if (consumed.kind === 'unauthorized') return 'attest-again';
    if (consumed.kind !== 'ok') {
      log.warn({ orderId, ...consumed }, 'the order was not taken');
      await sleep(LEAST_PAUSE_MS, signal);
      return 'go-on';
    }
    backoff.reset();
    log.info({ orderId, title, action: action.name }, 'order taken');
    if (action.name === 'reboot') return restart(order);
    const report = await perform(order, { api, token, machine, log, now, sleep, pace, signal, installCode, ext4, dispatcher: deps.dispatcher });
    reports.set(orderId, report);
    if (reports.size > REMEMBERED) reports.delete(reports.keys().next().value!);
    await deliver(orderId, report);
    return 'go-on';
  };

  const ask = async (current: Session): Promise<Step> => {
    const asked = now().getTime();
    const answer = await api.next(current.token, waitSeconds);
    switch (answer.kind) {
      case 'ok':
        return take(answer.value, current.token, current.installCode);
      case 'empty':
        backoff.reset();
        // A plane that does not hold the request must not be asked in a tight loop.
        if (now().getTime() - asked < LEAST_PAUSE_MS) await sleep(LEAST_PAUSE_MS, signal);
        return 'go-on';
      case 'unauthorized':
        log.warn({ code: answer.code }, 'the session token was revoked; attesting again');
        return 'attest-again';
      case 'refused':
      case 'unavailable': {
        const wait = backoff.next();
        if (!signal.aborted) log.warn({ ...answer, nextInMs: wait }, 'no order to be had; asking again');
        await sleep(wait, signal);
        return 'go-on';
      }
    }
  };

  try {
    while (!signal.aborted) {
      try {
        session ??= await logIn();
        if (!session) break;
        const step = await ask(session);
        if (step === 'rebooting') return 'rebooting';
        if (step === 'attest-again') session = null;
      } catch (error) {
        log.error({ err: error }, 'unexpected; the agent goes back to asking for work');
        await sleep(backoff.next(), signal);
      }
    }
    return 'told-to';
  } finally {
    await Promise.allSettled([api.close()]);
  }
}
