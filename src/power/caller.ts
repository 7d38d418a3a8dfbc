/** Who has a BMC asked: an activity of a run, or a person at the command line. The rules are the same for both. */

/** Time as the rules have it, so that a test may hold it in its hand. */
export interface Clock {
  /** Milliseconds since 1970, never running backwards: a corrected wall clock must not stretch a lease. */
  now(): number;
  /** Rejects when the caller wants no more meanwhile. */
  pause(ms: number): Promise<void>;
  /** @returns what takes the call back */
  after(ms: number, call: () => void): () => void;
}

export interface Caller {
  /** New for each conversation: a former try of the same caller may be alive still. */
  drawHolder(): string;
  /** Aborted when nobody wants the answer any more. */
  cancelled(): AbortSignal;
  /** Told what is waited for, and what is seen meanwhile. */
  tell(details: PowerNews): void;
  /** The same, for a timer that outlives the call it was made in. */
  teller(): (details: PowerNews) => void;
  /** Seconds for which it waits for somebody else's conversation; null: until it is cancelled. */
  readonly patienceSeconds: number | null;
}

/** What is going on at a BMC. */
export type PowerNews =
  | { readonly talksTo: string }
  | { readonly waitingFor: string }
  | { readonly waitsFor: string }
  /** `asked` was, or is to be, commanded; `why` where the power is not known. */
  | { readonly asked: 'on' | 'off'; readonly reads: string; readonly why?: string }
  | { readonly asked: 'on' | 'off'; readonly unanswered: string }
  /** The read of the two that end a retirement. */
  | { readonly read: 1 | 2; readonly reads: string };

export const systemTime: Pick<Clock, 'now' | 'after'> = {
  now: () => performance.timeOrigin + performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
