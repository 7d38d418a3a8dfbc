/** The Range header (RFC 9110 §14). Pure. */

export type AskedRange =
  | { readonly kind: 'whole' }
  /** Both ends inclusive. */
  | { readonly kind: 'part'; readonly from: number; readonly to: number }
  | { readonly kind: 'unsatisfiable' };

const WHOLE: AskedRange = { kind: 'whole' };

/**
 * One range of bytes, from an end or both. What is not understood, and a list of ranges, is answered with the whole file, as the
 * RFC allows: a client that sent it can take a 200, and a multipart answer has never been asked for by a node.
 * @param size bytes of the file
 */
export function readRange(header: string | undefined, size: number): AskedRange {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '');
  if (!match) return WHOLE;
  const [, first, last] = match as unknown as [string, string, string];
  if (first === '' && last === '') return WHOLE;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', from: size - length, to: size - 1 };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return WHOLE;
  if (from >= size) return { kind: 'unsatisfiable' };
  return { kind: 'part', from, to: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
