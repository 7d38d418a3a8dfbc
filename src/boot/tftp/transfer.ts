/** One transfer as a state machine: packets in, packets out, timers injected. It knows no socket. */
import type { BootFile } from '../files.js';
import type { Timers } from '../patience.js';
import type { TftpLimits } from './limits.js';
import type { TransferTerms } from './options.js';
import { dataPacket, errorPacket, oackPacket, TFTP_ERROR, type TftpPacket } from './packet.js';

/**
 * `aborted`: the client took the OACK and wanted no more, as every UEFI firmware does to learn a file's size (T1);
 * `client-error`: it gave up in the middle; `superseded`: it asked anew from the same port.
 */
export type TransferOutcome = 'complete' | 'aborted' | 'client-error' | 'timed-out' | 'read-failed' | 'superseded' | 'stopped';

export interface TransferEnd {
  readonly outcome: TransferOutcome;
  readonly blocksAcknowledged: number;
  readonly resends: number;
}

export interface TransferDeps {
  readonly file: Pick<BootFile, 'size' | 'read'>;
  readonly terms: TransferTerms;
  readonly limits: Pick<TftpLimits, 'waitMostMs' | 'resends' | 'transferMs'>;
  readonly timers: Timers;
  readonly send: (packet: Buffer) => void;
  /** Called exactly once. */
  readonly ended: (end: TransferEnd) => void;
}

export interface Transfer {
  start(): void;
  receive(packet: TftpPacket): void;
  stop(outcome: 'superseded' | 'stopped'): void;
  /** Whether resends went unanswered since the client's last progress. */
  stalled(): boolean;
}

/** The OACK is out and not acknowledged yet. */
const OFFERED = -1;

export function createTransfer({ file, terms, limits, timers, send, ended }: TransferDeps): Transfer {
  // A last block shorter than the others ends the file; it is empty when the size is an exact multiple (RFC 1350 §6).
  const blocks = Math.floor(file.size / terms.blockSize) + 1;
  let acknowledged = terms.accepted.length > 0 ? OFFERED : 0;
  let sent = 0;
  let unanswered = 0;
  let resends = 0;
  let over = false;
  /** Raised with each window, so that a slow disk cannot send one that was acknowledged meanwhile. */
  let window = 0;
  let cancelWait = (): void => {};
  let cancelWhole = (): void => {};

  function finish(outcome: TransferOutcome): void {
    if (over) return;
    over = true;
    cancelWait();
    cancelWhole();
    ended({ outcome, blocksAcknowledged: Math.max(0, acknowledged), resends });
  }

  function say(): void {
    if (acknowledged === OFFERED) {
      send(oackPacket(terms.accepted));
      wait();
    } else {
      void sendWindow(++window).catch(() => {
        send(errorPacket(TFTP_ERROR.undefined, 'the file cannot be read'));
        finish('read-failed');
      });
    }
  }

  async function sendWindow(mine: number): Promise<void> {
    cancelWait();
    const first = acknowledged;
    const count = Math.min(terms.windowSize, blocks - first);
    const offset = first * terms.blockSize;
    const length = Math.min(count * terms.blockSize, file.size - offset);
    const bytes = length > 0 ? await file.read(offset, length) : Buffer.alloc(0);
    if (over || mine !== window) return;
    if (bytes.length !== length) throw new Error('the file became shorter');
    for (let block = 0; block < count; block++) {
      send(dataPacket(first + block + 1, bytes.subarray(block * terms.blockSize, (block + 1) * terms.blockSize)));
    }
    sent = first + count;
    wait();
  }

  function wait(): void {
    cancelWait();
    cancelWait = timers.after(Math.min(terms.waitMs * 2 ** unanswered, Math.max(terms.waitMs, limits.waitMostMs)), () => {
      if (unanswered >= limits.resends) return finish('timed-out');
      unanswered++;
      resends++;
      say();
    });
  }

  function acknowledge(block: number): void {
    if (acknowledged === OFFERED) {
      if (block !== 0) return;
      acknowledged = 0;
    } else {
      // How far the 16 bits lead beyond what is acknowledged. Zero is a repeat, and is answered with nothing: answering each
      // repeat would double every block from then on (RFC 1123 §4.2.3.1). Fewer than were sent means that the rest of the
      // window was lost, and the next window starts there (RFC 7440 §4).
      const ahead = (block - acknowledged) & 0xffff;
      if (ahead === 0 || ahead > sent - acknowledged) return;
      acknowledged += ahead;
    }
    unanswered = 0;
    if (acknowledged === blocks) finish('complete');
    else say();
  }

  return {
    start() {
      cancelWhole = timers.after(limits.transferMs, () => finish('timed-out'));
      say();
    },
    receive(packet) {
      if (over) return;
      if (packet.kind === 'ack') acknowledge(packet.block);
      else if (packet.kind === 'error') finish(acknowledged === OFFERED ? 'aborted' : 'client-error');
    },
    stop: (outcome) => finish(outcome),
    stalled: () => unanswered > 0,
  };
}
