/** If-None-Match, If-Modified-Since and If-Range (RFC 9110 §13). Pure. */

export interface Validators {
  /** With its quotes; null while it is not known. */
  readonly etag: string | null;
  /** Whole seconds count, as in the header. */
  readonly modified: Date;
}

const opaque = (tag: string): string => tag.trim().replace(/^W\//, '');

/** Whether the client has it already (304). If-None-Match, when there, decides alone. */
export function unchanged(headers: { ifNoneMatch?: string; ifModifiedSince?: string }, { etag, modified }: Validators): boolean {
  if (headers.ifNoneMatch !== undefined) {
    if (headers.ifNoneMatch.trim() === '*') return true;
    return etag !== null && headers.ifNoneMatch.split(',').some((tag) => opaque(tag) === etag);
  }
  const since = Date.parse(headers.ifModifiedSince ?? '');
  return !Number.isNaN(since) && seconds(modified) <= since;
}

/** Whether a range may be answered: without If-Range always, else only when the file is surely the one the client has a part of. */
export function rangeApplies(ifRange: string | undefined, { etag, modified }: Validators): boolean {
  if (ifRange === undefined) return true;
  // A weak tag never fits: it does not promise equal bytes.
  if (/^(W\/)?"/.test(ifRange.trim())) return etag !== null && ifRange.trim() === etag;
  return Date.parse(ifRange) === seconds(modified);
}

const seconds = (at: Date): number => Math.floor(at.getTime() / 1000) * 1000;
