/** WS-Man envelopes over HTTP Digest: who may be asked again, and what a lost answer means. One request at a time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../telemetry/log.js';
import type { Timeouts } from '../http-once.js';
import { WSMAN_PATH, type Connection, type HttpOutcome } from './connection.js';
import type { DigestSession } from './digest.js';
import { ok, problem, type Outcome, type Problem } from '../problem.js';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Transport {
  /**
   * Posts one envelope. A `read` that got no answer is tried again; a `command` only while it surely had no effect.
   * @returns HTTP 200, 400 or 500 with its body (the last two carry SOAP faults), else the problem
   */
  post(envelope: string, kind: 'read' | 'command', signal: AbortSignal): Promise<Outcome<HttpAnswer>>;
}

export interface TransportDeps {
  readonly connection: Connection;
  readonly digest: DigestSession;
  readonly timeouts: Timeouts;
  /** Whether the connection is over TLS. */
  readonly isTls: boolean;
  /** `host:port`, for the texts. */
  readonly address: string;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
  readonly now?: () => Date;
}

/** Milliseconds of silence after which an ME may sleep: what wakes it is lost, and must not be a command. */
const QUIET_MS = 30_000;

/** With credentials, for one envelope: a first 401 may mean a nonce that AMT has dropped, a second means the password. */
const LOGINS = 2;

export function createTransport({ connection, digest, timeouts, isTls, address, secret, log, now = (): Date => new Date() }: TransportDeps): Transport {
  let heardAt = -Infinity;
  let last: Promise<unknown> = Promise.resolve();

  async function postPatiently(envelope: string, kind: 'read' | 'command', signal: AbortSignal): Promise<Outcome<HttpAnswer>> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = signal.aborted ? problem('bmc_unreachable', 'given up: the time for this call is over', 'none') : await postOnce(envelope, kind, signal);
      if (outcome.kind === 'ok' || attempt >= timeouts.tries || signal.aborted || !mayBeTriedAgain(outcome.problem, kind)) return outcome;
      log.debug({ bmc: address, attempt, why: outcome.problem.why }, 'no answer from the BMC, it may sleep: asking again');
      await sleep(timeouts.pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async function postOnce(envelope: string, kind: 'read' | 'command', signal: AbortSignal): Promise<Outcome<HttpAnswer>> {
    const mayBeAsleep = kind === 'command' && now().getTime() - heardAt > QUIET_MS;
    let authorization = mayBeAsleep ? null : digest.authorization('POST', WSMAN_PATH);
    if (authorization === null) {
      const probed = await probe(signal);
      if (probed.kind === 'problem') return probed;
      authorization = digest.authorization('POST', WSMAN_PATH);
    }
    for (let login = 1; ; login += 1) {
      const outcome = await connection.send({ body: envelope, authorization, signal });
      if (outcome.kind !== 'answer') return noAnswer(outcome, 'possible');
      heardAt = now().getTime();
      if (outcome.status !== 401) return judged(outcome);
      const challenged = takeChallenge(outcome.challenge);
      if (challenged.kind === 'problem') return challenged;
      if (login === LOGINS) return problem('bmc_auth_failed', `it refuses the credentials of ${secret}`, 'none', { address, secret });
      authorization = digest.authorization('POST', WSMAN_PATH);
    }
  }

  /** Fetches a challenge with an empty body, as curl does: a command goes out with credentials or not at all. Wakes an ME that sleeps. */
  async function probe(signal: AbortSignal): Promise<Outcome<void>> {
    const outcome = await connection.send({ body: '', authorization: null, signal });
    if (outcome.kind === 'lost' && outcome.why.startsWith('connection') && !isTls) {
      return noAnswer({ ...outcome, why: `${outcome.why}; if the port speaks TLS, NetBox has to say so (bmc_port 16993, or bmc_tls)` }, 'none');
    }
    if (outcome.kind !== 'answer') return noAnswer(outcome, 'none');
    heardAt = now().getTime();
    if (outcome.status !== 401) return problem('bmc_answer_invalid', `HTTP ${outcome.status} where AMT asks for credentials`, 'none', { address });
    return takeChallenge(outcome.challenge);
  }

  function takeChallenge(header: string | null): Outcome<void> {
    const challenged = digest.challenged(header);
    switch (challenged.kind) {
      case 'ready':
        return ok(undefined);
      case 'malformed':
        return problem('bmc_answer_invalid', challenged.why, 'none', { address });
      case 'realm-changed':
        return problem('bmc_answer_invalid', `its realm changed from ${challenged.from} to ${challenged.to}: another machine answers, or it was provisioned anew`, 'none', { address });
    }
  }

  function noAnswer(outcome: Exclude<HttpOutcome, { kind: 'answer' }>, sent: Problem['effect']): Outcome<never> {
    if (outcome.kind === 'unreadable') return problem('bmc_answer_invalid', outcome.why, sent, { address });
    if (outcome.kind === 'not-connected') return problem(outcome.code, outcome.why, 'none', { address });
    return problem('bmc_unreachable', outcome.why, sent, { address });
  }

  function judged({ status, body }: { status: number; body: string }): Outcome<HttpAnswer> {
    if (status === 200 || status === 400 || status === 500) return ok({ status, body });
    // Any other refusal of HTTP itself comes before WS-Man is reached; a broken server may have got further.
    return problem('bmc_answer_invalid', `HTTP ${status}`, status >= 400 && status < 500 ? 'none' : 'possible', { address });
  }

  return {
    post(envelope, kind, signal) {
      const posted = last.then(() => postPatiently(envelope, kind, signal));
      last = posted.catch(() => undefined);
      return posted;
    },
  };
}

const mayBeTriedAgain = (found: Problem, kind: 'read' | 'command'): boolean => found.code === 'bmc_unreachable' && (kind === 'read' || found.effect === 'none');
