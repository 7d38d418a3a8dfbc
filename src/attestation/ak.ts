/** The attestation key: an ECDSA P-256 key as SPKI DER (RFC 5480). */
import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';

export interface Ak {
  /** null when the bytes are no P-256 public key. */
  readonly key: KeyObject | null;
  /** SHA-256 of the DER as it was sent, hex. */
  readonly thumbprint: string;
}

/** IEEE P1363 form: r then s, 32 bytes each. */
export const SIGNATURE_BYTES = 64;

/** Reads the AK of a hello. Never throws; a key on another curve, or one with bytes around it, has no `key`. */
export function readAk(akPublic: string): Ak {
  const der = Buffer.from(akPublic, 'base64');
  const thumbprint = createHash('sha256').update(der).digest('hex');
  try {
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    const isP256 = key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    // Only the one canonical encoding: else one key would have many thumbprints, and `ak_changed` could be walked around.
    const isCanonical = key.export({ format: 'der', type: 'spki' }).equals(der);
    return { key: isP256 && isCanonical ? key : null, thumbprint };
  } catch {
    return { key: null, thumbprint };
  }
}

/** Did this key sign these bytes (ECDSA with SHA-256)? `signature` is in the P1363 form. */
export const signedBy = (key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean =>
  verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, signature);
