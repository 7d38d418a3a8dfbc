/** A certificate as an AMT that nobody gave one makes for itself: RSA, self-signed (RFC 5280 §4.1, DER by hand). */
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface SelfSigned {
  /** PEM. */
  readonly key: string;
  /** PEM. */
  readonly cert: string;
  /** SHA-256 of the certificate: upper-case hex with colons. */
  readonly fingerprint: string;
}

const [INTEGER, BIT_STRING, OCTET_STRING, NULL, OID, UTF8, GENERALIZED_TIME, SEQUENCE, SET] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0c, 0x18, 0x30, 0x31];
/** Contents of the object identifiers. */
const SHA256_WITH_RSA = Buffer.from('2a864886f70d01010b', 'hex');
const COMMON_NAME = Buffer.from('550403', 'hex');
const SUBJECT_ALT_NAME = Buffer.from('551d11', 'hex');
const DAY_MS = 86_400_000;

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const time = (at: Date): Buffer => der(GENERALIZED_TIME, Buffer.from(`${at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`));
const pem = (content: Buffer): string => `-----BEGIN CERTIFICATE-----\n${content.toString('base64').replaceAll(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;

/** @param host IPv4 address or host name for which it stands */
export function selfSigned(host: string, now = new Date()): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const algorithm = der(SEQUENCE, der(OID, SHA256_WITH_RSA), der(NULL));
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, der(OID, COMMON_NAME), der(UTF8, Buffer.from('Intel(r) AMT, simulated')))));
  const altName = isIPv4(host) ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host));
  const serial = randomBytes(8);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))), der(INTEGER, serial), algorithm, name,
    der(SEQUENCE, time(new Date(now.getTime() - DAY_MS)), time(new Date(now.getTime() + 365 * DAY_MS))), name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, der(SEQUENCE, der(OID, SUBJECT_ALT_NAME), der(OCTET_STRING, der(SEQUENCE, altName))))),
  );
  const cert = pem(der(SEQUENCE, body, algorithm, der(BIT_STRING, Buffer.from([0]), sign('sha256', body, privateKey))));
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert, fingerprint: new X509Certificate(cert).fingerprint256 };
}
