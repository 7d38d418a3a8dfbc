/**
 * IMDSv2's session tokens (AWS EC2 User Guide, "How Instance Metadata Service Version 2 works"): they show that the asker could
 * send a PUT with a header, which a page or a server tricked into fetching a URL cannot. They say nothing of who asks: the address does.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { MetalflowError } from '../../domain/errors.js';

/** Seconds; EC2's own bound. */
export const LONGEST_TTL = 21_600;

/** Whom a token was given to. */
export interface TokenHolder {
  readonly deviceId: string;
  readonly sender: string;
}

export interface ImdsTokens {
  issue(holder: TokenHolder, ttlSeconds: number): string;
  /** @throws metadata_token_wrong */
  verify(token: string, holder: TokenHolder): void;
}

const FORM = /^([0-9a-z]{1,10})\.([A-Za-z0-9_-]{43})$/;

/**
 * Nothing is kept: a token is its end and an HMAC-SHA256 over end, node and sender, so however many are asked for cost no memory.
 * @param deps.key 32 bytes or more. Of one process: after a restart clients get 401 and ask for a new token, as cloud-init does
 */
export function createImdsTokens({ key, now }: { key: Buffer; now: () => Date }): ImdsTokens {
  const macOf = (end: number, { deviceId, sender }: TokenHolder): Buffer => createHmac('sha256', key).update(JSON.stringify(['imds', end, deviceId, sender])).digest();
  return {
    issue: (holder, ttlSeconds) => {
      const end = Math.floor(now().getTime() / 1000) + ttlSeconds;
      return `${end.toString(36)}.${macOf(end, holder).toString('base64url')}`;
    },
    verify: (token, holder) => {
      const [, end = '', mac = ''] = FORM.exec(token) ?? [];
      const until = parseInt(end, 36);
      const isOurs = mac !== '' && timingSafeEqual(Buffer.from(mac, 'base64url'), macOf(until, holder));
      if (!isOurs || until * 1000 <= now().getTime()) throw new MetalflowError('metadata_token_wrong');
    },
  };
}

/** @throws metadata_ttl_invalid */
export function readTtl(header: string | readonly string[] | undefined): number {
  const ttl = typeof header === 'string' && /^[0-9]{1,5}$/.test(header) ? Number(header) : 0;
  if (ttl < 1 || ttl > LONGEST_TTL) throw new MetalflowError('metadata_ttl_invalid', { most: LONGEST_TTL });
  return ttl;
}
