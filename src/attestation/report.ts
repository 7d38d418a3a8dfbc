/** The judge of attestation reports: pure, given bytes. Each check refuses with its own reason (field failure R1). */
import { timingSafeEqual } from 'node:crypto';
import { readJson } from '../domain/json.js';
import { AttestationReport } from '../contracts/agent-api.js';
import type { AttestationVerdict, Challenge, ReportToVerify, VerifiedReport, VerifyReport } from '../contracts/agent-desk.js';
import { readAk, signedBy, SIGNATURE_BYTES, type Ak } from './ak.js';
import { parseLldp } from './lldp.js';
import type { RefusalReason } from './reasons.js';
import { proveAk, type AkProof } from './tpm.js';

const NONCE_BYTES = 32;

function refuseSignature(ak: Ak, input: ReportToVerify): RefusalReason | null {
  if (input.signature.length !== SIGNATURE_BYTES) return 'signature_malformed';
  if (!ak.key) return 'ak_invalid';
  return signedBy(ak.key, input.reportBytes, input.signature) ? null : 'signature_wrong';
}

function readReport(bytes: Uint8Array): AttestationReport | null {
  const reading = readJson(Buffer.from(bytes).toString('utf8'));
  const parsed = AttestationReport.safeParse(reading.kind === 'read' ? reading.value : null);
  return parsed.success ? parsed.data : null;
}

/** An empty nonce never fits, not even an empty challenge: a verifier that forgot its nonce must refuse everything. */
function sameNonce(sent: string, expected: string): boolean {
  const [a, b] = [Buffer.from(sent, 'base64'), Buffer.from(expected, 'base64')];
  return a.length === NONCE_BYTES && b.length === NONCE_BYTES && timingSafeEqual(a, b);
}

function refuseFreshness(report: AttestationReport, challenge: Challenge, now: Date): RefusalReason | null {
  if (!sameNonce(report.nonce, challenge.nonce)) return 'nonce_wrong';
  const expiresAt = Date.parse(challenge.expiresAt);
  // Written so that an unreadable instant counts as past.
  return now.getTime() < expiresAt ? null : 'nonce_expired';
}

function refuseIdentity(report: AttestationReport, { challenge, node }: ReportToVerify): RefusalReason | null {
  if (report.systemUuid !== challenge.systemUuid) return 'system_uuid_differs';
  if (report.bootMac !== challenge.bootMac) return 'boot_mac_differs';
  if (!node) return 'node_unknown';
  // A device that declares no system_uuid has nothing to compare; its run asked a person to approve that.
  if (node.systemUuid !== null && node.systemUuid !== report.systemUuid) return 'system_uuid_not_of_device';
  return node.attempt || node.admitted ? null : 'node_not_admitted';
}

function refuseAk(ak: Ak, proof: AkProof, { node, allowUnproven }: ReportToVerify): RefusalReason | null {
  const bound = node?.attempt?.akThumbprint ?? null;
  if (bound !== null && bound !== ak.thumbprint) return 'ak_changed';
  if (proof.kind === 'tpm' || allowUnproven) return null;
  // A declared EK is a promise of a TPM: leaving the TPM part out must not be a way around it.
  const classAdmits = node !== null && node.declaredEk === null && (node.attempt ? node.attempt.allowUnproven : node.classAllowsUnproven === true);
  return classAdmits ? null : 'ak_unproven';
}

/** What the switch said of itself; a frame that cannot be read is no reason to refuse a node, and no neighbour. */
function neighbourOf(report: AttestationReport | null): AttestationVerdict['neighbour'] {
  if (!report?.lldpFrame) return null;
  const lldp = parseLldp(Buffer.from(report.lldpFrame, 'hex'));
  return lldp.kind === 'neighbour' ? { chassis: lldp.chassis.text, port: lldp.port.text, system: lldp.system } : null;
}

/**
 * Verifies a report against its challenge and the device. Nothing a node sent makes it throw. The signature is judged before
 * anything in the report is looked at. That a challenge is taken once is the desk's part (`takeChallenge`).
 */
export const verifyReport: VerifyReport = (input: ReportToVerify): VerifiedReport => {
  const ak = readAk(input.challenge.akPublic);
  const conclude = (reason: RefusalReason | null, report: AttestationReport | null, proof: AkProof['kind'] = 'unproven'): VerifiedReport => ({
    verdict: { accepted: reason === null, reason, proof, akThumbprint: ak.thumbprint, neighbour: neighbourOf(report) },
    report,
  });

  const unsigned = refuseSignature(ak, input);
  if (unsigned) return conclude(unsigned, null);
  const report = readReport(input.reportBytes);
  if (!report) return conclude('report_malformed', null);

  const { akPublic, ekPublic, ekCertificate } = input.challenge;
  const proof = proveAk({ akPublic, ekPublic, ekCertificate, secret: input.secret, declaredEk: input.node?.declaredEk ?? null });
  const reason = refuseFreshness(report, input.challenge, input.now) ?? refuseIdentity(report, input) ?? refuseAk(ak, proof, input);
  return conclude(reason, report, proof.kind);
};
