/** The node's attestation key (AK): ECDSA P-256, made once, kept in its folder. It stands where a TPM's would. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

export interface AttestationKey {
  /** SPKI DER. */
  readonly publicKey: Buffer;
  /** ECDSA P-256 with SHA-256, IEEE P1363 (r‖s, 64 bytes). */
  sign(bytes: Uint8Array): Buffer;
}

function readKey(path: string): KeyObject | null {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  // A damaged key is not replaced: to the fleet, a machine with a new key is another machine.
  return createPrivateKey(pem);
}

function makeKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(`${path}.new`, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flush: true });
  // A link never replaces a key that another process made meanwhile.
  linkSync(`${path}.new`, path);
  rmSync(`${path}.new`);
  return privateKey;
}

/** Reads, or makes, the key at `path` (PKCS #8, PEM). Throws when what is there is no key. */
export function openAttestationKey(path: string): AttestationKey {
  const key = readKey(path) ?? makeKey(path);
  return {
    publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }),
    sign: (bytes) => sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }),
  };
}
