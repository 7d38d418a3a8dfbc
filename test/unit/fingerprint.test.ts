import { parseFingerprint, spellFingerprint } from '../../src/domain/fingerprint.js';

const DIGITS = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';

describe('the fingerprint of a certificate', () => {
  test.each([
    ['as openssl prints it', `sha256 Fingerprint=${spellFingerprint(DIGITS)}`],
    ['with colons', spellFingerprint(DIGITS)],
    ['in lower case', spellFingerprint(DIGITS).toLowerCase()],
    ['without anything between', DIGITS],
    ['with blanks', ` ${spellFingerprint(DIGITS).replaceAll(':', ' ')}\n`],
    ['with dashes', spellFingerprint(DIGITS).replaceAll(':', '-')],
    ['with its digest named', `SHA256:${DIGITS}`],
  ])('is read %s', (_name, text) => {
    expect(parseFingerprint(text)).toBe(DIGITS);
  });
  test.each([['nothing', ''], ['a SHA-1 one', spellFingerprint(DIGITS).slice(0, 59)], ['one octet more', `${DIGITS}00`], ['another letter', DIGITS.replace('a', 'g')], ['half an octet', `0:${DIGITS.slice(1)}`], ['base64', 'ChssPU5fYHGCk6S1xtfo+QobLD1OX2BxgpOktcbX6Pk=']])('%s is none', (_name, text) => {
    expect(parseFingerprint(text)).toBeNull();
  });
});
