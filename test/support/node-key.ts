/** A node's AK for tests: a fresh P-256 key that signs reports in the declared form. */
import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { AttestationReport } from '../../src/contracts/agent-api.js';

export interface NodeKey {
  readonly privateKey: KeyObject;
  /** SPKI DER, base64. */
  readonly akPublic: string;
  readonly thumbprint: string;
  /** IEEE P1363 (64 bytes). */
  sign(bytes: Uint8Array): Buffer;
  signDer(bytes: Uint8Array): Buffer;
}

export function createNodeKey(namedCurve = 'P-256'): NodeKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
  const der = publicKey.export({ format: 'der', type: 'spki' });
  return {
    privateKey,
    akPublic: der.toString('base64'),
    thumbprint: createHash('sha256').update(der).digest('hex'),
    sign: (bytes) => sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
    signDer: (bytes) => sign('sha256', bytes, privateKey),
  };
}

export const reportBytes = (report: AttestationReport): Buffer => Buffer.from(JSON.stringify(report));
