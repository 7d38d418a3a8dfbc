/** NetBox's X-Hook-Signature: HMAC-SHA512 over the raw body, 128 hex digits, no prefix. It covers neither headers nor time. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { MetalflowError } from '../domain/errors.js';

/** @throws signature_missing, signature_wrong */
export function checkSignature(body: Buffer, header: string | string[] | undefined, secret: string): void {
  if (header === undefined || header === '') throw new MetalflowError('signature_missing');
  const expected = createHmac('sha512', secret).update(body).digest();
  const given = typeof header === 'string' && /^[0-9a-f]{128}$/i.test(header) ? Buffer.from(header, 'hex') : null;
  if (given === null || !timingSafeEqual(expected, given)) throw new MetalflowError('signature_wrong');
}
