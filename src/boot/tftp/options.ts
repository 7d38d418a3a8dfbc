/** What a client's options come to (RFC 2347, 2348, 2349, 7440). Pure. */
import type { TftpLimits } from './limits.js';
import type { TftpOption } from './packet.js';

export interface TransferTerms {
  /** Bytes of a full block. */
  readonly blockSize: number;
  /** Blocks per acknowledgement. */
  readonly windowSize: number;
  /** First wait for an answer, ms. */
  readonly waitMs: number;
  /** What the OACK says, in the client's spelling of the names; empty means that none is sent. */
  readonly accepted: readonly TftpOption[];
}

const DEFAULT_BLOCK_SIZE = 512;

/** A plain decimal within bounds, or null. */
function decimal(text: string, least: number, most: number): number | null {
  if (!/^\d{1,15}$/.test(text)) return null;
  const value = Number(text);
  return value >= least && value <= most ? value : null;
}

/**
 * An option that is unknown, out of its RFC's range or given twice is left out of the OACK, which the client has to take as
 * refused (RFC 2347). `blksize` and `windowsize` may be answered lower than asked; `timeout` only as asked, or not at all.
 * @param size bytes of the file as it will be sent
 */
export function negotiate(options: readonly TftpOption[], size: number, limits: TftpLimits): TransferTerms {
  let blockSize = DEFAULT_BLOCK_SIZE;
  let windowSize = 1;
  let waitMs = limits.waitMs;
  const accepted: TftpOption[] = [];
  const seen = new Set<string>();
  for (const { name, value } of options) {
    const kind = name.toLowerCase();
    if (seen.has(kind)) continue;
    seen.add(kind);
    const accept = (answer: number): number => {
      accepted.push({ name, value: String(answer) });
      return answer;
    };
    if (kind === 'blksize') {
      const asked = decimal(value, 8, 65_464);
      if (asked !== null) blockSize = accept(Math.min(asked, limits.blockSize));
    } else if (kind === 'windowsize') {
      const asked = decimal(value, 1, 65_535);
      if (asked !== null) windowSize = accept(Math.min(asked, limits.windowSize));
    } else if (kind === 'timeout') {
      const asked = decimal(value, 1, Math.min(255, limits.timeoutMostSeconds));
      if (asked !== null) waitMs = accept(asked) * 1000;
    } else if (kind === 'tsize') {
      if (decimal(value, 0, Number.MAX_SAFE_INTEGER) !== null) accept(size);
    }
  }
  return { blockSize, windowSize, waitMs, accepted };
}
