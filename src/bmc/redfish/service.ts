/**
 * A Redfish service: who we are to it, what may be asked again, and what a lost answer means. A session (DSP0266 §13.3.4) where the
 * service has them, HTTP Basic where it has none. No password is sent before the service root has answered without one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import type { BmcCredentials } from '../../contracts/bmc.js';
import type { Logger } from '../../telemetry/log.js';
import { ok, problem, type Outcome } from '../problem.js';
import { readResource, refusal } from './answer.js';
import type { Timeouts } from '../http-once.js';
import type { Exchange, HttpAnswer, HttpOutcome } from './exchange.js';
import { ResourcePath, ServiceRoot } from './shapes.js';

export const ROOT = '/redfish/v1/';

export interface Received<T> {
  readonly value: T;
  /** For If-Match; null when the service gives none. */
  readonly etag: string | null;
}

export interface RedfishService {
  /** The service root, read once. */
  root(signal: AbortSignal): Promise<Outcome<z.infer<typeof ServiceRoot>>>;
  /** A read that got no answer, or a "not now", is tried again. */
  get<T>(path: string, shape: z.ZodType<T>, signal: AbortSignal): Promise<Outcome<Received<T>>>;
  /** A change is sent again only while it surely had no effect. 202 with a task counts as accepted: observation tells. */
  change(method: 'PATCH' | 'POST', path: string, body: object, signal: AbortSignal, etag?: string | null): Promise<Outcome<void>>;
  /** Ends the session, when there is one; never throws. */
  close(): Promise<void>;
}

export interface ServiceDeps {
  readonly exchange: Exchange;
  readonly credentials: BmcCredentials;
  readonly timeouts: Timeouts;
  /** `host:port`, for the texts. */
  readonly address: string;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
}

/** How requests are signed. */
type Pass = { readonly kind: 'session'; readonly token: string; readonly path: string | null } | { readonly kind: 'basic' };

/** A token may have expired since it was given; a second refusal means the password. */
const LOGINS = 2;
const BUSY = ['429', '503'];

export function createService({ exchange, credentials, timeouts, address, secret, log }: ServiceDeps): RedfishService {
  let root: z.infer<typeof ServiceRoot> | null = null;
  let pass: Pass | null = null;

  const basic = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`, 'utf8').toString('base64')}`;
  const signed = (by: Pass | null): Record<string, string> => (by === null ? {} : by.kind === 'basic' ? { authorization: basic } : { 'x-auth-token': by.token });
  const authFailed = (): Outcome<never> => problem('bmc_auth_failed', `it refuses the credentials of ${secret}`, 'none', { address, secret });

  const send = (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, by: Pass | null, signal: AbortSignal, body: object | null = null, extra: Record<string, string> = {},
  ): Promise<HttpOutcome> =>
    exchange.send({
      method, path, signal,
      headers: { accept: 'application/json', 'odata-version': '4.0', ...(body && { 'content-type': 'application/json' }), ...signed(by), ...extra },
      body: body && JSON.stringify(body),
    });

  function noAnswer(outcome: Exclude<HttpOutcome, HttpAnswer>): Outcome<never> {
    if (outcome.kind === 'not-connected') return problem(outcome.code, outcome.why, 'none', { address });
    return problem(outcome.kind === 'unreadable' ? 'bmc_answer_invalid' : 'bmc_unreachable', outcome.why, 'possible', { address });
  }

  /** The root answers without credentials (DSP0266 §13.3.1); one that does not is asked with Basic. */
  async function readRoot(signal: AbortSignal): Promise<Outcome<z.infer<typeof ServiceRoot>>> {
    if (root) return ok(root);
    for (const by of [null, { kind: 'basic' }] as const) {
      const answer = await send('GET', ROOT, by, signal);
      if (answer.kind !== 'answer') return noAnswer(answer);
      if (answer.status === 401) continue;
      if (answer.status === 404) return problem('bmc_answer_invalid', `there is no Redfish service at ${ROOT}`, 'none', { address });
      if (!isGood(answer)) return refusal(answer, 'reading the service root');
      const read = readResource(answer, 'reading the service root', ServiceRoot);
      if (read.kind === 'ok') {
        root = read.value;
        // Who asks for credentials even here has no use for a session.
        if (by) pass = by;
      }
      return read;
    }
    return authFailed();
  }

  async function logIn(signal: AbortSignal): Promise<Outcome<Pass>> {
    const found = await readRoot(signal);
    if (found.kind === 'problem') return found;
    if (pass) return ok(pass);
    const sessions = found.value.Links?.Sessions?.['@odata.id'];
    const made = sessions === undefined ? null : await openSession(sessions, signal);
    if (made?.kind === 'problem') return made;
    pass = made?.value ?? { kind: 'basic' };
    return ok(pass);
  }

  /** null: the service makes no session now (there are none, or too many); Basic may do. */
  async function openSession(path: string, signal: AbortSignal): Promise<Outcome<Pass | null>> {
    const answer = await send('POST', path, null, signal, { UserName: credentials.username, Password: credentials.password });
    // A session that was made and not told about expires by itself.
    if (answer.kind !== 'answer') return noAnswer(answer);
    if (answer.status === 401 || answer.status === 403) return authFailed();
    const token = answer.headers['x-auth-token'];
    if (isGood(answer) && token) return ok({ kind: 'session', token, path: pathOf(answer.headers['location']) });
    log.debug({ bmc: address, status: answer.status }, 'the BMC gives no session: Basic instead');
    return ok(null);
  }

  /** One request with credentials; a 401 comes before the deed, so it may be sent again under a new session. */
  async function once(method: 'GET' | 'POST' | 'PATCH', path: string, step: string, signal: AbortSignal, body: object | null, extra: Record<string, string>): Promise<Outcome<HttpAnswer>> {
    for (let login = 1; ; login += 1) {
      const by = await logIn(signal);
      // Nothing but logging in has happened.
      if (by.kind === 'problem') return { kind: 'problem', problem: { ...by.problem, effect: 'none' } };
      const answer = await send(method, path, by.value, signal, body, extra);
      if (answer.kind !== 'answer') return noAnswer(answer);
      if (answer.status === 401) {
        if (by.value.kind === 'basic' || login === LOGINS) return authFailed();
        pass = null;
        continue;
      }
      return isGood(answer) ? ok(answer) : refusal(answer, step);
    }
  }

  async function patiently(
    method: 'GET' | 'POST' | 'PATCH', path: string, step: string, signal: AbortSignal, body: object | null = null, extra: Record<string, string> = {},
  ): Promise<Outcome<HttpAnswer>> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = signal.aborted ? problem('bmc_unreachable', 'given up: the time for this call is over', 'none', { address }) : await once(method, path, step, signal, body, extra);
      log.debug({ bmc: address, step, attempt, ...(outcome.kind === 'problem' && { code: outcome.problem.code, why: outcome.problem.why }) }, 'asked the BMC');
      if (outcome.kind === 'ok' || attempt >= timeouts.tries || signal.aborted) return outcome;
      const { code, effect, details } = outcome.problem;
      if (!(code === 'bmc_unreachable' || BUSY.includes(details['status'] ?? '')) || !(method === 'GET' || effect === 'none')) return outcome;
      await sleep(timeouts.pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    async root(signal) {
      const by = await logIn(signal);
      return by.kind === 'ok' ? ok(root!) : by;
    },

    async get(path, shape, signal) {
      const step = `reading ${path}`;
      const answer = await patiently('GET', path, step, signal);
      if (answer.kind === 'problem') return answer;
      const read = readResource(answer.value, step, shape);
      if (read.kind === 'problem') return read;
      const inBody = (read.value as { '@odata.etag'?: unknown } | null)?.['@odata.etag'];
      return ok({ value: read.value, etag: answer.value.headers['etag'] ?? (typeof inBody === 'string' ? inBody : null) });
    },

    async change(method, path, body, signal, etag = null) {
      const answer = await patiently(method, path, `${method} ${path}`, signal, body, etag === null || !FIELD_TEXT.test(etag) ? {} : { 'if-match': etag });
      return answer.kind === 'ok' ? ok(undefined) : answer;
    },

    async close() {
      if (pass?.kind !== 'session' || pass.path === null) return;
      const { path } = pass;
      const ended = await send('DELETE', path, pass, AbortSignal.timeout(timeouts.requestMs));
      pass = null;
      // It expires by itself.
      if (ended.kind !== 'answer' || !isGood(ended)) log.debug({ bmc: address, why: ended.kind === 'answer' ? `HTTP ${ended.status}` : ended.why }, 'the session at the BMC could not be ended');
    },
  };
}

const isGood = ({ status }: HttpAnswer): boolean => status >= 200 && status < 300;

/** What may stand in a header that we send back. */
const FIELD_TEXT = /^[\x21-\x7e][\x20-\x7e]{0,499}$/;

/** A Location may name the host as the BMC knows itself, behind a port forward for one; only its path is ours. */
function pathOf(location: string | undefined): string | null {
  if (!location || !URL.canParse(location, 'http://bmc')) return null;
  const { pathname, search } = new URL(location, 'http://bmc');
  const path = ResourcePath.safeParse(pathname + search);
  return path.success ? path.data : null;
}
