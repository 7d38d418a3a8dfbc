/** The SHA-256 fingerprint of a certificate: hashed over its DER form, as openssl, browsers and Node show it. */

const SPELLING = /^(?:sha-?256(?: fingerprint)?\s*[:=]\s*)?((?:[0-9a-f]{2}[:\s-]?){31}[0-9a-f]{2})$/i;

/** Any usual spelling: colons, blanks, dashes or none between the octets, either case, `sha256 Fingerprint=` before it. @returns 64 lower-case hex digits */
export function parseFingerprint(text: string): string | null {
  const digits = SPELLING.exec(text.trim())?.[1];
  return digits === undefined ? null : digits.replaceAll(/[^0-9a-f]/gi, '').toLowerCase();
}

/** `AB:CD:…`, as a person compares it. */
export const spellFingerprint = (digits: string): string => digits.toUpperCase().match(/../g)!.join(':');
