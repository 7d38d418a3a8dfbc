/** Everything that goes wrong with AMTs in the field, as switches. Counts say how many times; Infinity means always. */

export interface AmtFaults {
  /** The `qop` of the challenge: AMT before 14, or since (A1). */
  qopProfile: 'auth' | 'auth-int, auth';
  /** Each nonce dies after this many uses; 0 never. */
  nonceResetEvery: number;
  /** Milliseconds for which PowerState stays what it was after a change. */
  lagMs: number;
  /** Reads for which it stays so, on top: lag without a clock. */
  lagReads: number;
  /** Accepts 8 and stays on. */
  neverOff: boolean;
  /** Accepts 2 and stays off. */
  neverOn: boolean;
  /** ReturnValue by method, e.g. `{RequestPowerStateChange: 2}`; nothing is done. */
  refuse: Readonly<Record<string, number>>;
  /** The next n power commands take effect, and the connection ends instead of their answer. */
  acceptThenDrop: number;
  /** As acceptThenDrop, for every call of this method or for `Put`. */
  dropAnswersOf: string | null;
  /** The next n requests with credentials end their connection and have no effect. */
  dropBefore: number;
  /** The next n connections end as they come: the ME sleeps, and they wake it. */
  sleepFirstN: number;
  /** Nobody listens; open connections end. */
  unreachable: boolean;
  /** Requests are read and never answered. */
  silent: boolean;
  /** Milliseconds before each answer. */
  answerDelayMs: number;
  /** Another machine's UUID. */
  otherUuid: string | null;
  /** 32 hex digits of another realm: provisioned anew. */
  otherRealm: string | null;
  /** Client control mode without user consent. */
  ccmAccessDenied: boolean;
  /** AMT_BootCapabilities.ForcePXEBoot is false. */
  noPxe: boolean;
  /** The operating system saves power while the machine is on (Modern Standby). */
  osSavesPower: boolean;
  /** AMT has the static address of the operating system. */
  hostsStaticAddress: boolean;
  /** Power policy "ON in S0": the ME and its link sleep with the machine. */
  sleepsWithHost: boolean;
  /** The machine runs on its battery. */
  onBattery: boolean;
  /** Seconds by which AMT's clock is ahead. */
  clockSkewSeconds: number;
  /** Classes that this firmware does not have. */
  absentClasses: readonly string[];
  /** What becomes of answers with credentials; their requests have been carried out. */
  answerAs: 'soap' | 'truncated-xml' | 'html' | 'huge' | 'slow-drip';
}

export const NO_FAULTS: AmtFaults = {
  qopProfile: 'auth', nonceResetEvery: 0, lagMs: 0, lagReads: 0, neverOff: false, neverOn: false, refuse: {}, acceptThenDrop: 0, dropAnswersOf: null, dropBefore: 0,
  sleepFirstN: 0, unreachable: false, silent: false, answerDelayMs: 0, otherUuid: null, otherRealm: null, ccmAccessDenied: false, noPxe: false,
  osSavesPower: false, hostsStaticAddress: false, sleepsWithHost: false, onBattery: false, clockSkewSeconds: 0, absentClasses: [], answerAs: 'soap',
};

/** Takes one of a count, if there is one left. */
export function takeOne(faults: AmtFaults, name: 'acceptThenDrop' | 'dropBefore' | 'sleepFirstN'): boolean {
  if (faults[name] <= 0) return false;
  faults[name] -= 1;
  return true;
}
