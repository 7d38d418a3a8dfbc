/** What the TFTP server lets a network ask of it. */

export interface TftpLimits {
  /** Transfers at once, of all clients and of one address. */
  readonly transfers: number;
  readonly transfersPerClient: number;
  /** Largest block size, bytes: 1500 of Ethernet less IP, UDP and TFTP headers, so that no block is fragmented. */
  readonly blockSize: number;
  /** Blocks sent per acknowledgement (RFC 7440). */
  readonly windowSize: number;
  /** First wait for an answer, ms; doubled with each resend up to `waitMostMs`. */
  readonly waitMs: number;
  readonly waitMostMs: number;
  /** Longest wait a client may ask for by the option `timeout`, seconds. */
  readonly timeoutMostSeconds: number;
  /** Resends without any sign of progress. */
  readonly resends: number;
  /** Longest whole transfer, ms: a client that acknowledges one block a minute does not hold a place for ever. */
  readonly transferMs: number;
  /** Largest file sent in netascii, bytes: the translation is made as a whole. */
  readonly netasciiBytes: number;
}

export const DEFAULT_TFTP_LIMITS: TftpLimits = {
  transfers: 512,
  transfersPerClient: 8,
  blockSize: 1468,
  windowSize: 16,
  waitMs: 1000,
  waitMostMs: 4000,
  timeoutMostSeconds: 10,
  resends: 5,
  transferMs: 600_000,
  netasciiBytes: 1024 * 1024,
};
