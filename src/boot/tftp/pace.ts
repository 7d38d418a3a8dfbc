/** How long a transfer waits for an answer before it sends again, and when it gives up. Pure but for the clock it is given. */
import type { TftpLimits } from './limits.js';
import type { TransferTerms } from './options.js';

export interface Pace {
  /** Something went out that was not sent before. */
  sent(): void;
  /** It was answered. */
  answered(): void;
  /** Milliseconds to wait now, or null to give up. `unanswered`: resends since the client's last progress. */
  wait(unanswered: number): number | null;
}

export type PaceLimits = Pick<TftpLimits, 'waitMostMs' | 'waitLeastMs' | 'resends' | 'firstResends'>;

/** Resends at the network's own pace, before those that wait as long as a client that is busy may need. */
const QUICK_RESENDS = 3;

/**
 * A client that asked for a `timeout` has it to the second (RFC 2349). For any other, the answers so far say how long an answer takes
 * (RFC 6298: mean and deviation; what was sent twice is not measured): a lost block of a network that answers in a
 * millisecond is sent again after `waitLeastMs`, not after a second. These quick ones come on top: the time until the transfer is given
 * up does not become shorter by them.
 * Until its first answer a client may be somebody whose address was forged, and gets `firstResends` only.
 */
export function createPace(terms: TransferTerms, limits: PaceLimits, now: () => number): Pace {
  const asked = terms.accepted.some(({ name }) => name.toLowerCase() === 'timeout');
  const most = Math.max(terms.waitMs, limits.waitMostMs);
  let sentAt: number | null = null;
  let mean: number | null = null;
  let deviation = 0;
  let heard = false;

  /** Null while nothing was measured, and when the network is no quicker than the wait that every transfer begins with. */
  function quickWait(): number | null {
    if (asked || mean === null) return null;
    const wait = Math.max(Math.min(limits.waitLeastMs, terms.waitMs), mean + 4 * deviation);
    return wait < terms.waitMs ? wait : null;
  }

  return {
    sent() {
      sentAt = now();
    },
    answered() {
      heard = true;
      if (sentAt === null) return;
      const took = now() - sentAt;
      deviation = mean === null ? took / 2 : 0.75 * deviation + 0.25 * Math.abs(mean - took);
      mean = mean === null ? took : 0.875 * mean + 0.125 * took;
      sentAt = null;
    },
    wait(unanswered) {
      if (unanswered > 0) sentAt = null;
      const quick = quickWait();
      if (quick !== null && unanswered < QUICK_RESENDS) return Math.min(quick * 2 ** unanswered, most);
      const slow = quick === null ? unanswered : unanswered - QUICK_RESENDS;
      // The wait after the last resend is waited out before the transfer is given up.
      return slow > (heard ? limits.resends : limits.firstResends) ? null : Math.min(terms.waitMs * 2 ** slow, most);
    },
  };
}
