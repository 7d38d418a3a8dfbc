/** The certificates of test/fixtures/certificates; its make.sh says what each is. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(__dirname, '..', 'fixtures', 'certificates');

export type CertificateName = 'amt' | 'expired' | 'elsewhere' | 'self-signed' | 'old';

export const CA_FILE = join(FOLDER, 'ca.pem');
/** Its text. */
export const authorities = readFileSync(CA_FILE, 'utf8');

export const certificate = (name: CertificateName): { key: string; cert: string } => ({
  key: readFileSync(join(FOLDER, `${name}.key`), 'utf8'),
  cert: readFileSync(join(FOLDER, `${name}.pem`), 'utf8'),
});

/** SHA-256 of the certificate, in upper case with colons, as openssl and browsers show it. */
export const fingerprintOf = (name: CertificateName): string => new X509Certificate(certificate(name).cert).fingerprint256;
