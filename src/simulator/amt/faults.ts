/** Everything that goes wrong with AMTs in the field, as switches: one table, from which types, checks, forms and docs are drawn. */
import { z } from 'zod';

/** How a switch is thrown in a form. */
export type SwitchKind = 'flag' | 'count' | 'choice' | 'json';

export interface FaultSwitch<Value> {
  readonly kind: SwitchKind;
  /** Reads what JSON can say into the value. */
  readonly schema: z.ZodType<Value, unknown>;
  readonly initial: Value;
  /** What may stand there, for people. */
  readonly values: string;
  readonly choices: readonly string[];
  /** One sentence. */
  readonly of: string;
}

const row = <Value>(kind: SwitchKind, schema: z.ZodType<Value, unknown>, initial: Value, values: string, of: string, choices: readonly string[] = []): FaultSwitch<Value> => ({ kind, schema, initial, values, of, choices });

const whole = (most: number): z.ZodNumber => z.number().int().min(0).max(most);
/** JSON has no Infinity: it is written `always`. */
const Count = z.union([whole(1_000_000), z.literal('always').transform(() => Number.POSITIVE_INFINITY)]);
const LONGEST_MS = 600_000;

const flag = (of: string): FaultSwitch<boolean> => row('flag', z.boolean(), false, 'true, false', of);
const count = (of: string, initial = 0): FaultSwitch<number> => row('count', Count, initial, 'a number, or "always"', of);
const milliseconds = (of: string): FaultSwitch<number> => row('count', whole(LONGEST_MS), 0, `0 to ${LONGEST_MS}`, of);
const choice = <const Choices extends readonly [string, ...string[]]>(choices: Choices, of: string): FaultSwitch<Choices[number]> =>
  row<Choices[number]>('choice', z.enum(choices), choices[0], choices.join(' | '), of, choices);

export const METHODS = ['RequestPowerStateChange', 'SetBootConfigRole', 'ChangeBootOrder', 'GetLowAccuracyTimeSynch'] as const;
const isMethod = (name: string): boolean => (METHODS as readonly string[]).includes(name);

export const FAULT_SWITCHES = {
  // ---- who asks ---------------------------------------------------------------------------------------------------
  qopProfile: choice(['auth', 'auth-int, auth', 'auth, auth-int', 'auth-int'], 'The qop of the challenge: `auth` before AMT 14, `auth-int, auth` since.'),
  nonceResetEvery: count('Each nonce dies after so many uses, and the next challenge says stale="true"; 0 never.'),
  strictDigestUri: flag('A digest over an absolute uri gets 401; real firmware hashes what was sent.'),
  lockedOut: flag('Every login is refused, with the right password too: the account is locked for a while.'),
  unauthorized: choice(['html-close', 'html-keep', 'empty-close'], 'A 401 carries an HTML page and closes its connection; or keeps it; or carries nothing.'),
  otherRealm: row('json', z.string().regex(/^[0-9A-F]{32}$/, 'must be 32 upper-case hex digits').nullable(), null, '32 hex digits, or null', 'Another realm: AMT was provisioned anew.'),

  // ---- power ------------------------------------------------------------------------------------------------------
  lagMs: milliseconds('For so many milliseconds after a change PowerState stays what it was, and a second request has ReturnValue 2.'),
  lagReads: count('For so many reads after a change PowerState stays what it was: lag without a clock.'),
  neverOff: flag('Off is accepted and never happens.'),
  neverOn: flag('On is accepted and never happens.'),
  redirectionOpen: flag('A SOL, storage or KVM session is open: off and cycle have ReturnValue 2, reset works.'),
  osAgent: flag('An agent runs in the operating system: sleep (4), hibernate (7), graceful off (12) and graceful reset (14) are available while on.'),
  readsAs: row('json', whole(65_535).nullable(), null, 'a number, or null', 'PowerState reads as this number, whatever the machine does.'),
  osSavesPower: flag('The operating system saves power while the machine is on (Modern Standby): PowerState reads on, OSPowerSavingState 3.'),
  osPowerSavingAbsent: flag('OSPowerSavingState is missing while the machine is on too; while it is off it always is.'),
  onlyPowerState: flag('The power association carries PowerState and nothing else.'),
  powerLost: flag('The mains are gone: the machine is off at once and nobody listens; back on mains it stays off.'),

  // ---- boot -------------------------------------------------------------------------------------------------------
  sourceRule: choice(['first-wins', 'last-wins'], 'Which of two boot sources counts that were set without a clear between them.'),
  ignoresBootOrder: flag('Boot order and role are accepted, and the machine boots from disk all the same.'),
  lowerCaseSource: flag('ChangeBootOrder knows `source` and not `Source`, as AMT 5 and before.'),
  fewerBootSettings: flag('AMT_BootSettingData has only what AMT 8 had; a Put of more is a fault.'),
  ccmAccessDenied: flag('Client control mode without user consent: setting a boot source is the fault AccessDenied.'),
  noPxe: flag('AMT_BootCapabilities.ForcePXEBoot is false.'),

  // ---- refusals ---------------------------------------------------------------------------------------------------
  refuse: row<Readonly<Record<string, number>>>('json', z.record(z.string().max(40).refine(isMethod, `must be one of ${METHODS.join(', ')}`), whole(65_535)), {}, '{"method": ReturnValue}', 'These methods answer with this ReturnValue and do nothing.'),
  absentClasses: row<readonly string[]>('json', z.array(z.string().regex(/^(?:CIM|AMT|IPS)_\w{1,60}$/, 'must be a class name')).max(50), [], '["class", …]', 'These classes are not there: Get is the fault DestinationUnreachable, Enumerate an empty set.'),

  // ---- connections ------------------------------------------------------------------------------------------------
  sleepFirstN: count('So many connections end as they come: the ME sleeps, and they wake it.'),
  sleepAfterIdleMs: milliseconds('While the machine is off, the ME falls asleep after so many milliseconds without a request; 0 never.'),
  wakeConnections: count('So many connections end before an ME that fell asleep is awake.', 1),
  settlingMs: milliseconds('For so many milliseconds after each power change every connection ends: the shared NIC settles.'),
  unreachable: flag('Nobody listens; open connections end.'),
  oneAtATime: flag('A request that comes while another is under way ends its connection.'),
  dropBefore: count('So many requests with credentials end their connection and have no effect.'),
  acceptThenDrop: count('So many power commands take effect, and the connection ends instead of their answer.'),
  dropAnswersOf: row('json', z.string().regex(/^\w{1,40}$/, 'must be a method, or Put').nullable(), null, 'a method, `Put`, or null', 'As acceptThenDrop, for every call of this method.'),
  silent: flag('Requests are read, carried out and never answered.'),
  answerDelayMs: milliseconds('Milliseconds before each answer.'),

  // ---- answers ----------------------------------------------------------------------------------------------------
  framing: choice(['chunked', 'length'], 'Answers come in chunks, or with Content-Length.'),
  answerAs: choice(['soap', 'truncated-xml', 'torn', 'html', 'huge', 'slow-drip'], 'What becomes of answers with credentials: cut XML, a connection that ends half-way, a web page, ten megabytes, a byte at a time. Their requests have been carried out.'),
  prefixes: choice(['letters', 'words'], 'Namespace prefixes: a to h as in firmware, or others.'),
  actionWithoutResponse: flag('The Action of an answer is that of its request.'),
  version: row('json', z.string().regex(/^\d{1,2}(?:\.\d{1,4}){1,3}$/, 'must be like 16.1.25'), '16.1.25', 'like 16.1.25', 'The version of AMT, in Identify, CIM_SoftwareIdentity and the Server header.'),

  // ---- how it is set up -------------------------------------------------------------------------------------------
  hostsStaticAddress: flag('AMT has the static address of the operating system, and is unreachable while that does not run.'),
  sleepsWithHost: flag('Power policy "ON in S0": the ME and its link sleep with the machine.'),
  onBattery: flag('The machine runs on its battery.'),
  clockSkewSeconds: row('count', z.number().int().min(-1_000_000_000).max(1_000_000_000), 0, 'a number of seconds', 'AMT\'s clock is ahead by so many seconds.'),

  // ---- which machine ----------------------------------------------------------------------------------------------
  otherUuid: row('json', z.string().regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, 'must be a UUID').nullable(), null, 'a UUID, or null', 'PlatformGUID is that of another machine.'),
} as const;

export type FaultName = keyof typeof FAULT_SWITCHES;
export type AmtFaults = { -readonly [Name in FaultName]: (typeof FAULT_SWITCHES)[Name]['initial'] };

export const FAULT_NAMES = Object.keys(FAULT_SWITCHES) as FaultName[];

const each = <Value>(of: (name: FaultName) => Value): Record<FaultName, Value> => Object.fromEntries(FAULT_NAMES.map((name) => [name, of(name)])) as Record<FaultName, Value>;

export const NO_FAULTS = Object.freeze(each((name) => FAULT_SWITCHES[name].initial as unknown)) as Readonly<AmtFaults>;

/** Some switches by name, as JSON says them; others are left as they are. An unknown name is an error. */
export const FaultChange = z.strictObject(each((name) => (FAULT_SWITCHES[name].schema as z.ZodType).optional())) as unknown as z.ZodType<Partial<AmtFaults>>;

/** As JSON says it. */
const shown = (value: unknown): unknown => (value === Number.POSITIVE_INFINITY ? 'always' : value);

/** Switches in a form that FaultChange reads back; only the thrown ones when asked. */
export function shownFaults(faults: Readonly<AmtFaults>, which: 'all' | 'thrown'): Record<string, unknown> {
  const names = which === 'all' ? FAULT_NAMES : FAULT_NAMES.filter((name) => JSON.stringify(shown(faults[name])) !== JSON.stringify(FAULT_SWITCHES[name].initial));
  return Object.fromEntries(names.map((name) => [name, shown(faults[name])]));
}

/** Takes one of a count, if there is one left. */
export function takeOne(faults: AmtFaults, name: 'acceptThenDrop' | 'dropBefore' | 'sleepFirstN'): boolean {
  if (faults[name] <= 0) return false;
  faults[name] -= 1;
  return true;
}
