import type { AttestationReport } from '../../src/contracts/agent-api.js';
import type { AttestingNode, Challenge, ReportToVerify } from '../../src/contracts/agent-desk.js';
import { REFUSAL_REASONS, type RefusalReason } from '../../src/attestation/reasons.js';
import { verifyReport } from '../../src/attestation/report.js';
import { proveAk } from '../../src/attestation/tpm.js';
import { createNodeKey, reportBytes, type NodeKey } from '../support/node-key.js';

const NOW = new Date('2026-11-30T10:00:00Z');
const UUID = '4c4c4544-0042-3510-8052-b4c04f4a4c31';
const OTHER_UUID = '4c4c4544-0042-3510-8052-b4c04f4a4c32';
const MAC = '02:01:48:aa:bb:0c';
const NONCE = Buffer.alloc(32, 7).toString('base64');
const OTHER_NONCE = Buffer.alloc(32, 8).toString('base64');
const key = createNodeKey();
const otherKey = createNodeKey();

const challenge: Challenge = { id: 'c1', nonce: NONCE, systemUuid: UUID, bootMac: MAC, akPublic: key.akPublic, ekPublic: null, ekCertificate: null, expiresAt: '2026-11-30T10:02:00Z' };
const attempt = { run: 3, bootAttempt: 'a1', allowUnproven: true, akThumbprint: null };
const node: AttestingNode = { deviceId: '7', name: 'node-7', systemUuid: UUID, declaredEk: null, attempt, admitted: true };
const report: AttestationReport = {
  version: 1,
  nonce: NONCE,
  systemUuid: UUID,
  bootMac: MAC,
  lldpFrame: '020704fcecda2e3da5040707506f72742037060200780a0f7377697463682d75707374616972730000',
  disks: [{ name: 'sda', serial: 'S1', model: 'Disk', sizeBytes: 1_000_000, bus: 'nvme' }],
  agent: { name: 'metalflow-agent', version: '0.1.0' },
};

/** A good report, signed by `by`; every override is one way to spoil it. */
function sent(overrides: Partial<ReportToVerify> & { says?: Partial<AttestationReport>; bytes?: Buffer; by?: NodeKey } = {}): ReportToVerify {
  const { says, bytes = reportBytes({ ...report, ...says }), by = key, ...rest } = overrides;
  return { challenge, reportBytes: bytes, signature: by.sign(bytes), secret: null, node, allowUnproven: false, now: NOW, ...rest };
}

function flipBit(bytes: Uint8Array, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[bit >> 3]! ^= 1 << (bit & 7);
  return flipped;
}

describe('attestation reports (R1)', () => {
  test('a good report of the class that admits unproven AKs is accepted, marked unproven, with its neighbour', () => {
    expect(verifyReport(sent())).toEqual({
      verdict: { accepted: true, reason: null, proof: 'unproven', akThumbprint: key.thumbprint, neighbour: { chassis: 'fc:ec:da:2e:3d:a5', port: 'Port 7', system: 'switch-upstairs' } },
      report,
    });
  });

  const good = sent();
  const brokenBytes = Buffer.from('{"version":1');
  const rows: { name: string; input: ReportToVerify; reason: RefusalReason }[] = [
    { name: 'R1a the same report for a new challenge', input: { ...good, challenge: { ...challenge, nonce: OTHER_NONCE } }, reason: 'nonce_wrong' },
    { name: 'R1b an empty nonce', input: sent({ says: { nonce: '' } }), reason: 'nonce_wrong' },
    { name: 'R1b an empty nonce against a challenge that has none', input: sent({ says: { nonce: '' }, challenge: { ...challenge, nonce: '' } }), reason: 'nonce_wrong' },
    { name: 'R1c the right nonce, signed by another AK', input: sent({ by: otherKey }), reason: 'signature_wrong' },
    { name: 'R1d one bit flipped in the report', input: { ...good, reportBytes: flipBit(good.reportBytes, 77) }, reason: 'signature_wrong' },
    { name: 'R1e one bit flipped in the signature', input: { ...good, signature: flipBit(good.signature, 300) }, reason: 'signature_wrong' },
    { name: 'R1e a signature of zeros', input: { ...good, signature: Buffer.alloc(64) }, reason: 'signature_wrong' },
    { name: 'R1f another boot MAC written into the signed report', input: { ...good, reportBytes: reportBytes({ ...report, bootMac: '02:01:48:aa:bb:0d' }) }, reason: 'signature_wrong' },
    { name: 'R1f another neighbour written into the signed report', input: { ...good, reportBytes: reportBytes({ ...report, lldpFrame: null }) }, reason: 'signature_wrong' },
    { name: 'R1i the good report of node A for the challenge of node B', input: { ...good, challenge: { ...challenge, systemUuid: OTHER_UUID, nonce: OTHER_NONCE, akPublic: otherKey.akPublic } }, reason: 'signature_wrong' },
    { name: "R1i node A's own report on a challenge opened as node B", input: { ...good, challenge: { ...challenge, systemUuid: OTHER_UUID } }, reason: 'system_uuid_differs' },
    { name: 'R1j a report after the challenge expired', input: sent({ now: new Date('2026-11-30T10:02:00Z') }), reason: 'nonce_expired' },
    { name: 'R1j a challenge whose expiry cannot be read', input: sent({ challenge: { ...challenge, expiresAt: 'soon' } }), reason: 'nonce_expired' },
    { name: 'R1k a DER signature', input: { ...good, signature: key.signDer(good.reportBytes) }, reason: 'signature_malformed' },
    { name: 'no signature', input: { ...good, signature: Buffer.alloc(0) }, reason: 'signature_malformed' },
    { name: 'an AK on another curve', input: sent({ challenge: { ...challenge, akPublic: createNodeKey('P-384').akPublic } }), reason: 'ak_invalid' },
    { name: 'an AK that is no key', input: sent({ challenge: { ...challenge, akPublic: 'AAAAAAAAAAAAAAAAAAAAAAAA' } }), reason: 'ak_invalid' },
    { name: 'an AK with bytes behind it', input: sent({ challenge: { ...challenge, akPublic: Buffer.concat([Buffer.from(key.akPublic, 'base64'), Buffer.alloc(3)]).toString('base64') } }), reason: 'ak_invalid' },
    { name: 'signed bytes that are no JSON', input: sent({ bytes: brokenBytes }), reason: 'report_malformed' },
    { name: 'signed JSON that is no report', input: sent({ bytes: Buffer.from('{"version":2}') }), reason: 'report_malformed' },
    { name: 'signed JSON nested 5000 deep', input: sent({ bytes: Buffer.from('['.repeat(5000) + ']'.repeat(5000)) }), reason: 'report_malformed' },
    { name: 'a boot MAC other than that of the hello', input: sent({ says: { bootMac: '02:01:48:aa:bb:0d' } }), reason: 'boot_mac_differs' },
    { name: 'a MAC that no device declares', input: sent({ node: null }), reason: 'node_unknown' },
    { name: 'a machine in the place of the device', input: sent({ node: { ...node, systemUuid: OTHER_UUID } }), reason: 'system_uuid_not_of_device' },
    { name: 'a node that nobody waits for', input: sent({ node: { ...node, attempt: null, admitted: false } }), reason: 'node_not_admitted' },
    { name: 'a second AK in one boot attempt', input: sent({ node: { ...node, attempt: { ...attempt, akThumbprint: otherKey.thumbprint } } }), reason: 'ak_changed' },
    { name: 'an unproven AK without a run, for a class that wants proof', input: sent({ node: { ...node, attempt: null, classAllowsUnproven: false } }), reason: 'ak_unproven' },
    { name: 'an unproven AK for a class that wants proof', input: sent({ node: { ...node, attempt: { ...attempt, allowUnproven: false } } }), reason: 'ak_unproven' },
    { name: 'an unproven AK at intake', input: sent({ node: { ...node, attempt: null } }), reason: 'ak_unproven' },
    { name: 'an AK without TPM part of a device that declares an EK', input: sent({ node: { ...node, declaredEk: 'ab'.repeat(32) } }), reason: 'ak_unproven' },
  ];
  test.each(rows)('$name is refused as $reason', ({ input, reason }) => {
    expect(verifyReport(input).verdict).toMatchObject({ accepted: false, reason, proof: 'unproven' });
  });

  test('every reason of the table is met by a case', () => {
    expect(new Set(rows.map((row) => row.reason))).toEqual(new Set(Object.keys(REFUSAL_REASONS)));
  });

  test('no single flipped bit of report or signature is accepted (R1 d, e)', () => {
    const accepted: string[] = [];
    for (let bit = 0; bit < 512; bit += 5) if (verifyReport({ ...good, signature: flipBit(good.signature, bit) }).verdict.accepted) accepted.push(`signature ${bit}`);
    for (let bit = 0; bit < good.reportBytes.length * 8; bit += 61) if (verifyReport({ ...good, reportBytes: flipBit(good.reportBytes, bit) }).verdict.accepted) accepted.push(`report ${bit}`);
    expect(accepted).toEqual([]);
  });

  test('what the AK did not sign is never kept as a report', () => {
    expect(verifyReport(sent({ by: otherKey })).report).toBeNull();
    expect(verifyReport(sent({ node: null })).report).toEqual(report);
  });

  test('the same AK attests again in its boot attempt', () => {
    expect(verifyReport(sent({ node: { ...node, attempt: { ...attempt, akThumbprint: key.thumbprint } } })).verdict.accepted).toBe(true);
  });

  test('a class that allows it admits an unproven AK without a run too, and marks it; a run goes by what it pinned', () => {
    const waiting = { ...node, classAllowsUnproven: true };
    expect(verifyReport(sent({ node: { ...waiting, attempt: null } })).verdict).toMatchObject({ accepted: true, proof: 'unproven' });
    expect(verifyReport(sent({ node: { ...waiting, attempt: { ...attempt, allowUnproven: false } } })).verdict.reason).toBe('ak_unproven');
  });

  test('the simulation admits an unproven AK everywhere, and marks it', () => {
    expect(verifyReport(sent({ allowUnproven: true, node: { ...node, attempt: null } })).verdict).toMatchObject({ accepted: true, proof: 'unproven' });
  });

  test('a device without system_uuid is judged by its MAC alone', () => {
    expect(verifyReport(sent({ node: { ...node, systemUuid: null } })).verdict.accepted).toBe(true);
  });

  test('an LLDP frame that cannot be read is no neighbour and no refusal (R3)', () => {
    expect(verifyReport(sent({ says: { lldpFrame: '02ff' } })).verdict).toMatchObject({ accepted: true, neighbour: null });
  });

  test('TPM evidence that nobody checks proves nothing', () => {
    expect(proveAk({ akPublic: key.akPublic, ekPublic: 'AAAA', ekCertificate: null, secret: Buffer.from('x'), declaredEk: null })).toEqual({ kind: 'unproven', why: 'the TPM part of the report is not checked yet' });
  });
});
