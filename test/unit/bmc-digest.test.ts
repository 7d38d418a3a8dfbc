import { readChallenge } from '../../src/bmc/amt/challenge.js';
import { createDigestSession, digestAuthorization } from '../../src/bmc/amt/digest.js';

const REALM = 'Digest:2517B2332AFD88353D5F5FD352697901';
const NONCE = 'QYePBLMVAAAAAAAAjfXveceOM5bNfu/K';
/** As captured from AMT 16.1.25 (rps#779). */
const AMT_16 = `Digest realm="${REALM}", nonce="${NONCE}",stale="false",qop="auth-int, auth"`;
const credentials = { username: 'admin', password: 'P@ssw0rd1!' };
const digest = { realm: REALM, nonce: NONCE, qop: 'auth', opaque: null };

describe('the Digest challenge', () => {
  test.each([
    ['the quoted list of AMT 16 (A1)', AMT_16, digest],
    ['a list in the other order (A1)', `Digest realm="${REALM}", nonce="${NONCE}", qop="auth,auth-int"`, digest],
    ['a bare qop (A1)', `Digest realm="${REALM}", nonce="${NONCE}", qop=auth`, digest],
    ['no qop at all (A1)', `Digest realm="${REALM}", nonce="${NONCE}"`, { ...digest, qop: null }],
    ['another scheme in front', `Basic realm="x, y", Digest realm="${REALM}", nonce="${NONCE}", qop="auth"`, digest],
    ['other letter case, blanks and an opaque', `DIGEST Realm = "${REALM}" ,NONCE="${NONCE}",QOP="AUTH", algorithm=md5, opaque="5c"`, { ...digest, opaque: '5c' }],
  ])('%s is read', (_name, header, challenge) => {
    expect(readChallenge(header)).toEqual({ kind: 'digest', challenge });
  });

  test.each([
    ['nothing', null, 'HTTP 401 without WWW-Authenticate'],
    ['a word alone (A1)', 'Digest foo', 'cannot be parsed|lacks realm'],
    ['an open quote', `Digest realm="${REALM}, nonce=x`, 'cannot be parsed'],
    ['a parameter without scheme', 'realm="x", nonce="y"', 'cannot be parsed'],
    ['no nonce', `Digest realm="${REALM}"`, 'lacks realm or nonce'],
    ['Basic only', 'Basic realm="x"', 'offers no Digest'],
    ['auth-int only', `Digest realm="${REALM}", nonce="${NONCE}", qop="auth-int"`, 'does not offer qop auth'],
    ['SHA-256', `Digest realm="${REALM}", nonce="${NONCE}", algorithm=SHA-256`, 'MD5 only'],
    ['5000 characters', `Digest realm="${'x'.repeat(5000)}"`, 'longer than'],
  ])('%s is one clear error', (_name, header, why) => {
    expect(readChallenge(header)).toEqual({ kind: 'malformed', why: expect.stringMatching(why) });
  });

  test('a hostile header is refused in linear time', () => {
    expect(readChallenge(`Digest ${'a="\\'.repeat(1000)}`)).toMatchObject({ kind: 'malformed' });
  });
});

describe('the Digest answer', () => {
  const reading = readChallenge(AMT_16);
  const challenge = reading.kind === 'digest' ? reading.challenge : (undefined as never);
  const header = digestAuthorization({ credentials, challenge, method: 'POST', uri: '/wsman', count: 1, cnonce: '0a4f113b' });

  test('has the response that AMT 16 expects (A1)', () => {
    expect(header).toContain('response="df4331cfacb88d10477b00d570d5ae59"');
  });
  test('names one qop and eight digits of nc, unquoted (A1)', () => {
    expect(header).toMatch(/qop=auth, nc=00000001, cnonce="0a4f113b"/);
  });
  test('gives the nonce back as it came (A1)', () => {
    expect(header).toContain(`nonce="${NONCE}"`);
  });
  test('without qop takes the form of RFC 2069', () => {
    const old = digestAuthorization({ credentials, challenge: { ...challenge, qop: null }, method: 'POST', uri: '/wsman', count: 1, cnonce: 'x' });
    // md5(HA1:nonce:HA2) of the values that A1 pins.
    expect(old).toBe(`Digest username="admin", realm="${REALM}", nonce="${NONCE}", uri="/wsman", response="f906f6651e7b8117a57511a50e5d774c"`);
  });
  test('escapes a quote in the user name', () => {
    expect(digestAuthorization({ credentials: { username: 'a"b', password: 'x' }, challenge, method: 'POST', uri: '/wsman', count: 1, cnonce: 'x' })).toContain(String.raw`username="a\"b"`);
  });
});

describe('the Digest session', () => {
  const session = (): ReturnType<typeof createDigestSession> => createDigestSession({ credentials, drawCnonce: () => '0a4f113b' });
  const nc = (header: string | null): string | undefined => /nc=(\w+)/.exec(header ?? '')?.[1];

  test('has no answer before the first challenge', () => {
    expect(session().authorization('POST', '/wsman')).toBeNull();
  });
  test('counts the uses of a nonce and begins anew with the next', () => {
    const digestSession = session();
    digestSession.challenged(AMT_16);
    expect([1, 2, 3].map(() => nc(digestSession.authorization('POST', '/wsman')))).toEqual(['00000001', '00000002', '00000003']);
    digestSession.challenged(AMT_16);
    expect(nc(digestSession.authorization('POST', '/wsman'))).toBe('00000004');
    digestSession.challenged(AMT_16.replace(NONCE, 'AAAA'));
    expect(nc(digestSession.authorization('POST', '/wsman'))).toBe('00000001');
  });
  test('names both realms when the realm changes, and keeps to the first', () => {
    const digestSession = session();
    digestSession.challenged(AMT_16);
    expect(digestSession.challenged(AMT_16.replace(REALM, 'Digest:00'))).toEqual({ kind: 'realm-changed', from: REALM, to: 'Digest:00' });
    expect(digestSession.authorization('POST', '/wsman')).toContain(REALM);
  });
});
