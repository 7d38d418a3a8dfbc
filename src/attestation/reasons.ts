/** Why a report is refused: one word each kind (field failure R1), so that evidence can be counted and searched. */

export const REFUSAL_REASONS = {
  signature_malformed: 'the signature is not 64 bytes r and s (IEEE P1363)',
  ak_invalid: 'the AK is no ECDSA P-256 public key in SPKI DER',
  signature_wrong: 'the AK of the challenge did not sign these bytes',
  report_malformed: 'what was signed is no attestation report',
  nonce_wrong: 'the report answers another challenge',
  nonce_expired: 'the report came after the challenge had expired',
  system_uuid_differs: 'the report names another system UUID than the hello',
  boot_mac_differs: 'the report names another boot MAC than the hello',
  node_unknown: 'no device declares this boot MAC',
  system_uuid_not_of_device: "the device's system_uuid is another one",
  node_not_admitted: 'no run waits for this node and intake does not admit it',
  ak_changed: 'another AK attested in this boot attempt already',
  ak_unproven: 'no TPM proves the AK, and the class does not admit that',
} as const satisfies Record<string, string>;

export type RefusalReason = keyof typeof REFUSAL_REASONS;
