/** Every port is asked with a limit, and what it throws becomes a row of the error table. */
import { isMetalflowError, MetalflowError, type ErrorCode } from '../domain/errors.js';

/** Milliseconds. A verb waits for a workflow to judge it; the rest are reads. */
export const LIMITS_MS = { read: 10_000, verb: 30_000, ready: 2_000 } as const;

/**
 * @param code what a late answer, or an error that is none of ours, is called; its own text stays in the log as the cause
 * @throws MetalflowError of the port, or of `code`
 */
export async function ask<T>(code: ErrorCode, limitMs: number, call: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new MetalflowError(code, { why: `no answer within ${limitMs} ms` })), limitMs);
  });
  try {
    return await Promise.race([call(), late]);
  } catch (cause) {
    throw isMetalflowError(cause) ? cause : new MetalflowError(code, { why: 'the call failed; the log says why' }, { cause });
  } finally {
    clearTimeout(timer);
  }
}
