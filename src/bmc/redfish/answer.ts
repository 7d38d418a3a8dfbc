/** What the answer to a request means: a JSON resource, or the service's error in words. */
import { readJson } from '../../domain/json.js';
import type { z } from 'zod';
import { ok, problem, type Outcome } from '../problem.js';
import type { HttpAnswer } from './exchange.js';
import { ErrorBody } from './shapes.js';

/** Longest text of a refusal that is kept; a service may send pages. */
const LONGEST_WORDS = 300;

/** What a MessageId of the Base registry (DSP8011) asks the operator to change, where its own text does not say. */
const MEANINGS: Readonly<Record<string, string>> = {
  InsufficientPrivilege: 'the account lacks the privilege: give it the role Operator',
  AccessDenied: 'the account lacks the privilege: give it the role Operator',
  NoValidSession: 'the session is over',
  SessionLimitExceeded: 'too many sessions are open on the BMC: close some, or wait until they expire',
};

/** Without credentials or rights, and for what does not exist or does not fit, a request is refused before anything is done. */
const isBeforeTheDeed = (status: number): boolean => status < 500 || status === 501;

export interface ServiceError {
  /** MessageId without its registry, `ResourceInUse`; empty when the service names none. */
  readonly id: string;
  readonly words: string;
}

/** @returns the first of the extended messages, with its resolution; null when the body is no Redfish error */
export function readError(body: string): ServiceError | null {
  const json = readJson(body);
  const parsed = json.kind === 'read' ? ErrorBody.safeParse(json.value) : null;
  if (!parsed?.success) return null;
  const { code, message, '@Message.ExtendedInfo': extended = [] } = parsed.data.error;
  const first = extended.find((one) => one.Message) ?? extended[0];
  const id = (first?.MessageId ?? code ?? '').split('.').at(-1)!.slice(0, 80);
  // "None" is what services write for a resolution that there is not.
  const resolution = first?.Resolution && !/^none\.?$/i.test(first.Resolution.trim()) ? ` ${first.Resolution}` : '';
  const words = MEANINGS[id] ?? `${first?.Message ?? message ?? (id || 'no reason given')}${resolution}`;
  return { id, words: words.replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST_WORDS) };
}

/** @returns the problem of an answer outside 200..299. `step` names the request in the texts. */
export function refusal({ status, headers, body }: HttpAnswer, step: string): Outcome<never> {
  const error = readError(body);
  if (status >= 300 && status < 400) {
    const elsewhere = (headers['location'] ?? 'nowhere').slice(0, 200);
    return problem('bmc_answer_invalid', `${step}: HTTP ${status}, it sends us to ${elsewhere}`, 'none', { status: String(status) });
  }
  // A service that is overloaded or in maintenance says so itself; the same number from a proxy says nothing.
  const effect = isBeforeTheDeed(status) || (status === 503 && error) ? 'none' : 'possible';
  if (!error && body.trim() !== '') return problem('bmc_answer_invalid', `${step}: HTTP ${status} with ${kindOf(body)}`, effect, { status: String(status) });
  const value = `HTTP ${status}${error?.id ? ` ${error.id}` : ''}`;
  const meaning = error?.words ?? (status === 403 ? MEANINGS['InsufficientPrivilege']! : 'no reason given');
  return problem('bmc_refused', `${step}: ${value} (${meaning})`, effect, { step, value, meaning, status: String(status) });
}

/** The resource of a successful GET, in the given shape. */
export function readResource<T>({ status, body }: HttpAnswer, step: string, shape: z.ZodType<T>): Outcome<T> {
  const invalid = (what: string): Outcome<never> => problem('bmc_answer_invalid', `${step}: ${what}`, 'none', { status: String(status) });
  const json = readJson(body);
  if (json.kind === 'refused') return invalid(`HTTP ${status} with ${kindOf(body)}: it ${json.why}`);
  const shaped = shape.safeParse(json.value);
  if (shaped.success) return ok(shaped.data);
  const issue = shaped.error.issues[0]!;
  return invalid(`${issue.path.join('.') || 'the answer'}: ${issue.message}`);
}

const kindOf = (body: string): string => (/^\s*</.test(body) ? 'a web page instead of a Redfish answer' : 'something that is no Redfish answer');
