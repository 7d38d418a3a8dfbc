/** Challenges, evidence, sessions and install codes. */
import { randomBytes } from 'node:crypto';
import { MetalflowError } from '../domain/errors.js';
import { DEFAULT_LIMITS, type Limits } from '../domain/limits.js';
import { isOneOf, WAIT_MENU_STATES } from '../domain/states.js';
import type { AttestationDesk, AttestingNode, Challenge } from '../contracts/agent-desk.js';
import { runWorkflowId, SIGNALS } from '../contracts/messages.js';
import { RunPlan } from '../contracts/plan.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { distrust } from './installation.js';
import { hashSecret, newId, newSecret } from './ids.js';
import { issueInstallCode } from './install-codes.js';
import { appendJournal } from './journal.js';
import { post } from './outbox.js';
import { keepRefusedReport } from './refused-reports.js';
import { revokeSessions } from './voiding.js';

export function createAttestationDesk({ db, now, woken, limits = DEFAULT_LIMITS, crash = noCrash }: { db: Db; now: () => Date; woken: () => void; limits?: Limits; crash?: CrashPoint }): AttestationDesk {
  const after = (seconds: number): string => new Date(now().getTime() + seconds * 1000).toISOString();
  return {
    async openChallenge(input) {
      const challenge: Challenge = { ...input, id: newId(now()), nonce: randomBytes(32).toString('base64'), expiresAt: after(limits.challenge) };
      // Expired ones are nobody's; hello is open to anyone, so they must not pile up.
      await db.deleteFrom('challenge').where('expires_at', '<', after(-limits.challenge)).execute();
      await db
        .insertInto('challenge')
        .values({
          id: challenge.id, nonce: challenge.nonce, system_uuid: input.systemUuid, boot_mac: input.bootMac, ak_public: input.akPublic, ek_public: input.ekPublic,
          ek_certificate: input.ekCertificate, expires_at: challenge.expiresAt, taken_at: null,
        })
        .execute();
      return challenge;
    },

    async takeChallenge(id) {
      const at = now().toISOString();
      const row = await db.updateTable('challenge').set({ taken_at: at }).where('id', '=', id).where('taken_at', 'is', null).where('expires_at', '>=', at).returningAll().executeTakeFirst();
      if (!row) return null;
      crash('challenge-taken');
      return { id: row.id, nonce: row.nonce, systemUuid: row.system_uuid, bootMac: row.boot_mac, akPublic: row.ak_public, ekPublic: row.ek_public, ekCertificate: row.ek_certificate, expiresAt: row.expires_at };
    },

    async findNode(bootMac) {
      const device = await db
        .selectFrom('device_mac')
        .innerJoin('device', 'device.device_id', 'device_mac.device_id')
        .selectAll('device')
        .where('device_mac.mac', '=', bootMac)
        .executeTakeFirst();
      if (!device) return null;
      const trusted = (await distrust(db, device.device_id)) === null;
      const attempt = device.open_run === null || !trusted ? null : await openAttempt(db, device.device_id, device.open_run);
      return {
        deviceId: device.device_id, name: device.name, systemUuid: device.system_uuid, declaredEk: device.tpm_ek, attempt, classAllowsUnproven: device.allow_unproven === 1,
        admitted: trusted && (attempt !== null || (device.open_run === null && isOneOf(WAIT_MENU_STATES, device.state))),
      };
    },

    async record({ node, challenge, report, verdict, sender }) {
      const at = now();
      const evidence = {
        id: newId(at), device_id: node?.deviceId ?? null, run: node?.attempt?.run ?? null, boot_attempt: node?.attempt?.bootAttempt ?? null, at: at.toISOString(),
        accepted: verdict.accepted ? 1 : 0, reason: verdict.reason, proof: verdict.proof, boot_mac: challenge.bootMac, system_uuid: challenge.systemUuid,
        ak_thumbprint: verdict.akThumbprint, neighbour: verdict.neighbour && JSON.stringify(verdict.neighbour), disks: report && JSON.stringify(report.disks), sender,
      };
      const answer = await lockedTransaction(db, node?.deviceId ?? '', async (tx) => {
        if (!node || !verdict.accepted) {
          await keepRefusedReport(tx, at, node, evidence);
          return null;
        }
        await tx.insertInto('attestation').values(evidence).execute();
        await appendJournal(tx, at, { deviceId: node.deviceId, run: evidence.run, kind: 'attestation', text: `attested as ${challenge.bootMac}, AK ${verdict.akThumbprint.slice(0, 16)}… (${verdict.proof})` });
        const token = await openSession(tx, at, node, verdict.akThumbprint, after(limits.sessionToken));
        await tx.updateTable('device').set({ proof: verdict.proof }).where('device_id', '=', node.deviceId).execute();
        const installCode = node.attempt ? await acceptAttempt(tx, at, node, node.attempt, evidence.id, verdict.akThumbprint, after(limits.installCode), challenge.systemUuid) : await acceptIntake(tx, at, node, evidence.id);
        crash('attestation-before-commit');
        return { token, installCode };
      });
      crash('attestation-before-answer');
      woken();
      return answer;
    },
  };
}

/** The attempt this boot belongs to: open, and its script was served; an older boot's agent does not count. */
async function openAttempt(db: Db, deviceId: string, run: number): Promise<AttestingNode['attempt']> {
  const row = await db
    .selectFrom('boot_attempt')
    .innerJoin('run', (join) => join.onRef('run.device_id', '=', 'boot_attempt.device_id').onRef('run.number', '=', 'boot_attempt.run'))
    .select(['boot_attempt.id', 'boot_attempt.ak_thumbprint', 'run.plan'])
    .where('boot_attempt.device_id', '=', deviceId)
    .where('boot_attempt.run', '=', run)
    .where('boot_attempt.closed_at', 'is', null)
    .where('boot_attempt.boot_seen_at', 'is not', null)
    .orderBy('boot_attempt.id', 'desc')
    .executeTakeFirst();
  if (!row) return null;
  return { run, bootAttempt: row.id, allowUnproven: planOf(row.plan)?.allowUnproven ?? false, akThumbprint: row.ak_thumbprint };
}

const planOf = (json: string | null): RunPlan | null => (json ? (RunPlan.safeParse(JSON.parse(json)).data ?? null) : null);

async function openSession(tx: Tx, at: Date, node: AttestingNode, akThumbprint: string, expiresAt: string): Promise<string> {
  const token = newSecret();
  await revokeSessions(tx, node.deviceId, at);
  await tx
    .insertInto('session')
    .values({
      token_hash: hashSecret(token), device_id: node.deviceId, run: node.attempt?.run ?? null, boot_attempt: node.attempt?.bootAttempt ?? null, ak_thumbprint: akThumbprint,
      created_at: at.toISOString(), expires_at: expiresAt, revoked_at: null, last_seen_at: null,
    })
    .execute();
  return token;
}

async function acceptAttempt(tx: Tx, at: Date, node: AttestingNode, attempt: NonNullable<AttestingNode['attempt']>, attestationId: string, akThumbprint: string, codeExpiresAt: string, systemUuid: string): Promise<string | null> {
  const row = await tx.selectFrom('boot_attempt').select(['closed_at', 'attested_at']).where('id', '=', attempt.bootAttempt).executeTakeFirst();
  if (!row || row.closed_at !== null) throw new MetalflowError('attempt_superseded', { attempt: attempt.bootAttempt });
  if (row.attested_at === null) {
    await tx.updateTable('boot_attempt').set({ attested_at: at.toISOString(), ak_thumbprint: akThumbprint }).where('id', '=', attempt.bootAttempt).execute();
    await post(tx, at, { kind: 'signal-run', workflowId: runWorkflowId(node.deviceId, attempt.run), name: SIGNALS.attested.name, payload: { bootAttempt: attempt.bootAttempt, attestationId, accepted: true, reason: null } });
  }
  const run = await tx.selectFrom('run').select(['kind']).where('device_id', '=', node.deviceId).where('number', '=', attempt.run).executeTakeFirstOrThrow();
  if (run.kind !== 'provision' && run.kind !== 'reprovision') return null;
  return issueInstallCode(tx, at, { deviceId: node.deviceId, run: attempt.run, systemUuid, expiresAt: codeExpiresAt });
}

async function acceptIntake(tx: Tx, at: Date, node: AttestingNode, attestationId: string): Promise<null> {
  await post(tx, at, { kind: 'signal-lifecycle', deviceId: node.deviceId, name: SIGNALS.attested.name, payload: { bootAttempt: null, attestationId, accepted: true, reason: null } });
  return null;
}
