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
  /** Least wait for an answer, ms, where the network is seen to answer quicker. */
  readonly waitLeastMs: number;
  /** Resends without any sign of progress. */
  readonly resends: number;
  /** Resends to a client that never answered: it may be one whose address was forged by somebody else. */
  readonly firstResends: number;
  /** Longest whole transfer, ms: a client that acknowledges one block a minute does not hold a place for ever. */
  readonly transferMs: number;
  /** Largest file sent in netascii, bytes: the translation is made as a whole. */
  readonly netasciiBytes: number;
}

export const DEFAULT_TFTP_LIMITS: TftpLimits = {
  transfers: 512,
  transfersPerClient: 16,
  blockSize: 1468,
  windowSize: 16,
  waitMs: 1000,
  waitMostMs: 4000,
  waitLeastMs: 100,
  timeoutMostSeconds: 10,
  resends: 5,
  firstResends: 2,
  transferMs: 600_000,
  netasciiBytes: 1024 * 1024,
};
