/** Reads a `WWW-Authenticate: Digest …` header (RFC 2617 §3.2.1, grammar of RFC 7235 §4.1). */

export interface DigestChallenge {
  /** `Digest:` and 32 hex digits on AMT; the same for the life of a provisioned machine. Kept as it stands between its quotes. */
  readonly realm: string;
  readonly nonce: string;
  /** null when the challenge names none (RFC 2069 form). `auth-int` is never chosen: every AMT that offers it offers `auth` too. */
  readonly qop: 'auth' | null;
  readonly opaque: string | null;
}

export type ChallengeReading = { readonly kind: 'digest'; readonly challenge: DigestChallenge } | { readonly kind: 'malformed'; readonly why: string };

interface Scheme {
  readonly name: string;
  readonly params: Map<string, string>;
}

const LONGEST_HEADER = 4096;
const SCHEME = /\s*([A-Za-z][\w-]*)(?:\s+|$)(?!\s*=)/y;
// A value is a quoted string, in which commas mean nothing (A1), or a bare token.
const PARAM = /\s*([A-Za-z][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?:,|$)/y;

const malformed = (why: string): ChallengeReading => ({ kind: 'malformed', why });

/**
 * @param header all WWW-Authenticate values of one answer, joined by commas; null when there was none
 * @returns the Digest challenge among them, or the one reason why there is none that we can answer
 */
export function readChallenge(header: string | null): ChallengeReading {
  if (header === null || header.trim() === '') return malformed('HTTP 401 without WWW-Authenticate');
  if (header.length > LONGEST_HEADER) return malformed(`WWW-Authenticate is longer than ${LONGEST_HEADER} characters`);
  const schemes = readSchemes(header);
  if (schemes === null) return malformed('WWW-Authenticate cannot be parsed');
  const digest = schemes.find(({ name }) => name === 'digest')?.params;
  if (!digest) return malformed('WWW-Authenticate offers no Digest');
  const [realm, nonce] = [digest.get('realm'), digest.get('nonce')];
  if (realm === undefined || !nonce) return malformed('the Digest challenge lacks realm or nonce');
  const algorithm = digest.get('algorithm') ?? 'MD5';
  if (algorithm.toUpperCase() !== 'MD5') return malformed(`the Digest challenge wants algorithm ${algorithm.slice(0, 20)}; AMT has MD5 only`);
  const offered = digest.get('qop')?.split(',').map((qop) => qop.trim().toLowerCase());
  if (offered && !offered.includes('auth')) return malformed('the Digest challenge does not offer qop auth');
  return { kind: 'digest', challenge: { realm, nonce, qop: offered ? 'auth' : null, opaque: digest.get('opaque') ?? null } };
}

/** null when the text leaves the grammar anywhere: half a challenge is none. */
function readSchemes(header: string): Scheme[] | null {
  const schemes: Scheme[] = [];
  let at = 0;
  while (at < header.length && header.slice(at).trim() !== '') {
    PARAM.lastIndex = SCHEME.lastIndex = at;
    const param = PARAM.exec(header);
    if (param) {
      const current = schemes.at(-1);
      if (!current) return null;
      current.params.set(param[1]!.toLowerCase(), param[2] ?? param[3]!);
      at = PARAM.lastIndex;
      continue;
    }
    const scheme = SCHEME.exec(header);
    if (!scheme) return null;
    schemes.push({ name: scheme[1]!.toLowerCase(), params: new Map() });
    at = SCHEME.lastIndex;
  }
  return schemes;
}
