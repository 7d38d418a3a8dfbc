/**
 * The seam for TPM proofs. Today nothing proves an AK: whoever holds a P-256 key can sign a report, and such a node is
 * admitted only where its class says `allowUnproven`, marked `unproven`.
 *
 * A later TPM part goes in here and nowhere else. It has to show, in this order: the EK is the declared one (SHA-256 of its
 * public key, or a certificate chain the site trusts); the AK lives in that TPM (TPM2_MakeCredential at the hello, and the
 * `secret` of the report is what TPM2_ActivateCredential gave back); the AK is restricted and signing; the quote
 * (TPMS_ATTEST, magic ff544347, type 8018) carries our nonce as extraData and its pcrDigest fits the reported PCRs.
 * TPM 2.0 Library, Part 1 §24 (credential protection), Part 2 §10.12 (attestation structures).
 */

/** What a node may send to show that its AK is held by a TPM. All as sent, none of it checked yet. */
export interface AkEvidence {
  /** SPKI DER, base64. */
  readonly akPublic: string;
  /** TPM2B_PUBLIC of the EK, base64. */
  readonly ekPublic: string | null;
  /** X.509 DER, base64. */
  readonly ekCertificate: string | null;
  /** What the TPM got out of our credential. */
  readonly secret: Uint8Array | null;
  /** SHA-256 of the EK public key that the device declares in NetBox. */
  readonly declaredEk: string | null;
}

export type AkProof =
  /** The AK lives in the TPM with this EK (SHA-256 of its public key, hex). */
  | { readonly kind: 'tpm'; readonly ekThumbprint: string }
  | { readonly kind: 'unproven'; readonly why: string };

/** Is the AK held by a TPM, and by the declared one? Today always `unproven`: evidence that nobody checks proves nothing. */
export function proveAk(evidence: AkEvidence): AkProof {
  const sent = evidence.ekPublic !== null || evidence.ekCertificate !== null || evidence.secret !== null;
  return { kind: 'unproven', why: sent ? 'the TPM part of the report is not checked yet' : 'no TPM part was sent' };
}
