/** The client's half of HTTP Digest (RFC 2617 §3.2.2): MD5 only, which is all that AMT speaks. */
import { createHash, randomBytes } from 'node:crypto';
import type { BmcCredentials } from '../../contracts/bmc.js';
import { readChallenge, type DigestChallenge } from './challenge.js';

const md5 = (text: string): string => createHash('md5').update(text, 'utf8').digest('hex');
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;

export interface DigestInput {
  readonly credentials: BmcCredentials;
  readonly challenge: DigestChallenge;
  readonly method: string;
  /** As it stands in the request line. */
  readonly uri: string;
  /** How often this nonce has been used, this time included. */
  readonly count: number;
  readonly cnonce: string;
}

/** The value of the Authorization header. `qop` and `nc` go unquoted, as the RFC has them. */
export function digestAuthorization({ credentials, challenge, method, uri, count, cnonce }: DigestInput): string {
  const { realm, nonce, qop, opaque } = challenge;
  const nc = count.toString(16).padStart(8, '0');
  const ha1 = md5(`${credentials.username}:${realm}:${credentials.password}`);
  const ha2 = md5(`${method}:${uri}`);
  const response = md5(qop ? [ha1, nonce, nc, cnonce, qop, ha2].join(':') : [ha1, nonce, ha2].join(':'));
  return `Digest ${[
    `username=${quoted(credentials.username)}`,
    `realm="${realm}"`,
    `nonce="${nonce}"`,
    `uri="${uri}"`,
    ...(qop ? [`qop=${qop}`, `nc=${nc}`, `cnonce="${cnonce}"`] : []),
    `response="${response}"`,
    ...(opaque === null ? [] : [`opaque="${opaque}"`]),
  ].join(', ')}`;
}

export type Challenged =
  | { readonly kind: 'ready' }
  | { readonly kind: 'malformed'; readonly why: string }
  /** Another machine answers at this address, or this one was provisioned anew. */
  | { readonly kind: 'realm-changed'; readonly from: string; readonly to: string };

/** The newest nonce of one BMC and how often it was used. */
export interface DigestSession {
  /** Takes the challenge of a 401. */
  challenged(header: string | null): Challenged;
  /** null before the first challenge. Each call uses the nonce once more. */
  authorization(method: string, uri: string): string | null;
}

export function createDigestSession(deps: { credentials: BmcCredentials; drawCnonce?: () => string }): DigestSession {
  const drawCnonce = deps.drawCnonce ?? ((): string => randomBytes(8).toString('hex'));
  let current: DigestChallenge | null = null;
  let count = 0;
  return {
    challenged(header) {
      const reading = readChallenge(header);
      if (reading.kind === 'malformed') return reading;
      if (current !== null && current.realm !== reading.challenge.realm) return { kind: 'realm-changed', from: current.realm, to: reading.challenge.realm };
      if (current?.nonce !== reading.challenge.nonce) count = 0;
      current = reading.challenge;
      return { kind: 'ready' };
    },
    authorization(method, uri) {
      if (current === null) return null;
      count += 1;
      return digestAuthorization({ credentials: deps.credentials, challenge: current, method, uri, count, cnonce: drawCnonce() });
    },
  };
}
