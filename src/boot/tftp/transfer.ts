/** One transfer as a state machine: packets in, packets out, timers injected. It knows no socket. */
import type { BootFile } from '../files.js';
import type { Timers } from '../patience.js';
import type { TftpLimits } from './limits.js';
import type { TransferTerms } from './options.js';
import { createAlarm } from './alarm.js';
import { createPace, type PaceLimits } from './pace.js';
import { createDataPackets } from './data-packets.js';
import { errorPacket, oackPacket, TFTP_ERROR, type TftpPacket } from './packet.js';
import { createReader } from './reader.js';

/**
 * `aborted`: the client took the OACK and wanted no more, as every UEFI firmware does to learn a file's size (T1);
 * `client-error`: it gave up in the middle; `superseded`: it asked anew from the same port; `crowded-out`: it never answered, and others
 * needed its place.
 */
export type TransferOutcome = 'complete' | 'aborted' | 'client-error' | 'timed-out' | 'read-failed' | 'superseded' | 'crowded-out' | 'stopped';

export interface TransferEnd {
  readonly outcome: TransferOutcome;
  readonly blocksAcknowledged: number;
  readonly resends: number;
}

export interface TransferDeps {
  readonly file: Pick<BootFile, 'size' | 'read' | 'bytes'>;
  readonly terms: TransferTerms;
  readonly limits: PaceLimits & Pick<TftpLimits, 'transferMs'>;
  readonly timers: Timers;
  readonly send: (packet: Buffer) => void;
  /** Called exactly once. */
  readonly ended: (end: TransferEnd) => void;
}

export interface Transfer {
  start(): void;
  receive(packet: TftpPacket): void;
  stop(outcome: 'superseded' | 'crowded-out' | 'stopped'): void;
  /** Whether resends went unanswered since the client's last progress. */
  stalled(): boolean;
  /** Whether the client has never answered, not even to a resend. */
  unheard(): boolean;
}

/** The OACK is out and not acknowledged yet. */
const OFFERED = -1;

export function createTransfer({ file, terms, limits, timers, send, ended }: TransferDeps): Transfer {
  const pace = createPace(terms, limits, timers.now);
  const reader = createReader(file);
  const packets = createDataPackets(terms);
  // A last block shorter than the others ends the file; it is empty when the size is an exact multiple (RFC 1350 §6).
  const blocks = Math.floor(file.size / terms.blockSize) + 1;
  let acknowledged = terms.accepted.length > 0 ? OFFERED : 0;
  let sent = 0;
  let unanswered = 0;
  let resends = 0;
  let over = false;
  /** Raised with each window, so that a slow disk cannot send one that was acknowledged meanwhile. */
  let window = 0;
  let cancelWhole = (): void => {};
  const alarm = createAlarm(timers, () => {
    if (pace.wait(unanswered + 1) === null) return finish('timed-out');
    unanswered++;
    resends++;
    say();
  });

  function finish(outcome: TransferOutcome): void {
    if (over) return;
    over = true;
    alarm.off();
    cancelWhole();
    ended({ outcome, blocksAcknowledged: Math.max(0, acknowledged), resends });
  }

  function say(): void {
    if (acknowledged === OFFERED) {
      if (unanswered === 0) pace.sent();
      send(oackPacket(terms.accepted));
      wait();
      return;
    }
    const mine = ++window;
    const count = Math.min(terms.windowSize, blocks - acknowledged);
    const offset = acknowledged * terms.blockSize;
    const bytes = reader.read(offset, Math.min(count * terms.blockSize, file.size - offset));
    // What is in memory goes out at once; a promise for each block would cost more than the block.
    if (Buffer.isBuffer(bytes)) return sendWindow(count, bytes);
    alarm.off();
    bytes.then((read) => {
      if (!over && mine === window) sendWindow(count, read);
    }).catch(() => {
      if (over) return;
      send(errorPacket(TFTP_ERROR.undefined, 'the file cannot be read'));
      finish('read-failed');
    });
  }

  function sendWindow(count: number, bytes: Buffer): void {
    if (unanswered === 0) pace.sent();
    for (let block = 0; block < count; block++) {
      send(packets.fill(acknowledged + block + 1, bytes, block * terms.blockSize, Math.min((block + 1) * terms.blockSize, bytes.length)));
    }
    sent = acknowledged + count;
    wait();
  }

  const wait = (): void => alarm.set(pace.wait(unanswered) ?? 0);

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
    pace.answered();
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
    unheard: () => unanswered > 0 && acknowledged <= 0,
  };
}
