/** The server's half of HTTP Digest as AMT does it: MD5, nonces that are reused with a rising count and may die any time. */
import { createHash, randomBytes } from 'node:crypto';
import type { AmtFaults } from './faults.js';

const md5 = (data: string | Buffer): string => createHash('md5').update(data).digest('hex');

/** The oldest is forgotten beyond this many. */
const NONCES_KEPT = 64;

export interface DigestGuard {
  /** Whether the request bears the right response to a live nonce. */
  admits(request: { method: string; authorization: string | undefined; body: Buffer }): boolean;
  /** A WWW-Authenticate value with a new nonce, in AMT's own punctuation. */
  challenge(): string;
}

export function createDigestGuard(deps: { username: string; password: string; realm: string; faults: AmtFaults }): DigestGuard {
  const { faults } = deps;
  const nonces = new Map<string, { highest: number; uses: number }>();
  let staleNonce = false;
  const realm = (): string => `Digest:${faults.otherRealm ?? deps.realm}`;

  function expected(params: ReadonlyMap<string, string>, method: string, body: Buffer): string {
    // Hashed over the uri as it was sent: some clients send it absolute.
    const ha1 = md5(`${deps.username}:${realm()}:${deps.password}`);
    const qop = params.get('qop');
    const ha2 = md5(`${method}:${params.get('uri')}${qop === 'auth-int' ? `:${md5(body)}` : ''}`);
    return md5([ha1, params.get('nonce'), params.get('nc'), params.get('cnonce'), qop, ha2].join(':'));
  }

  return {
    admits({ method, authorization, body }) {
      staleNonce = false;
      if (faults.lockedOut || !authorization || !/^Digest\s/i.test(authorization)) return false;
      const params = readParams(authorization);
      const nonce = nonces.get(params.get('nonce') ?? '');
      const count = Number.parseInt(params.get('nc') ?? '', 16);
      const offered = faults.qopProfile.split(', ');
      const isOurUri = (faults.strictDigestUri ? /^\/wsman$/ : /^(?:https?:\/\/[^/]+)?\/wsman$/).test(params.get('uri') ?? '');
      const fits = params.get('username') === deps.username && params.get('realm') === realm() && offered.includes(params.get('qop') ?? '') && isOurUri;
      if (!fits || Number.isNaN(count) || params.get('response') !== expected(params, method, body)) return false;
      // From here on the password is right; what is wrong is the nonce.
      staleNonce = true;
      if (!nonce || count <= nonce.highest) return false;
      if (faults.nonceResetEvery > 0 && nonce.uses >= faults.nonceResetEvery) {
        nonces.delete(params.get('nonce')!);
        return false;
      }
      nonce.highest = count;
      nonce.uses += 1;
      staleNonce = false;
      return true;
    },
    challenge() {
      const nonce = randomBytes(24).toString('base64');
      nonces.set(nonce, { highest: 0, uses: 0 });
      if (nonces.size > NONCES_KEPT) nonces.delete(nonces.keys().next().value!);
      return `Digest realm="${realm()}", nonce="${nonce}",stale="${staleNonce}",qop="${faults.qopProfile}"`;
    },
  };
}

/** Quoted or bare, as clients please: `qop=auth`, `nc="00000001"`. */
function readParams(authorization: string): Map<string, string> {
  const params = new Map<string, string>();
  for (const [, name, quoted, bare] of authorization.matchAll(/([A-Za-z]+)\s*=\s*(?:"([^"]*)"|([^\s",]+))/g)) params.set(name!.toLowerCase(), quoted ?? bare!);
  return params;
}
