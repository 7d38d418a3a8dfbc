/** Reports that were refused. Anybody may send one, so what is kept of them is short and few: no disks, and a repeat takes the place of what it repeats. */
import type { Insertable } from 'kysely';
import type { AttestingNode } from '../contracts/agent-desk.js';
import { runWorkflowId, SIGNALS } from '../contracts/messages.js';
import type { Tx } from './database.js';
import { appendJournal } from './journal.js';
import { post } from './outbox.js';
import type { AttestationTable } from './schema.js';

type Evidence = Insertable<AttestationTable>;

/** MACs that no device declares, of which the last report is kept. */
export const MOST_STRANGERS = 100;
/** A refusal that goes on is one line in the journal; one that comes back after so long is another. */
const NEWS_AGAIN_MS = 24 * 3600 * 1000;

export async function keepRefusedReport(tx: Tx, at: Date, node: AttestingNode | null, report: Evidence): Promise<void> {
  const evidence = { ...report, disks: null };
  return node ? keepOfNode(tx, at, node, evidence) : keepOfStranger(tx, evidence);
}

async function keepOfStranger(tx: Tx, evidence: Evidence): Promise<void> {
  await tx.deleteFrom('attestation').where('device_id', 'is', null).where('boot_mac', '=', evidence.boot_mac).execute();
  await tx.insertInto('attestation').values(evidence).execute();
  const last = await tx.selectFrom('attestation')
    .select('id')
    .where('device_id', 'is', null)
    .orderBy('id', 'desc')
    .offset(MOST_STRANGERS)
    .limit(1)
    .executeTakeFirst();
  if (last) await tx.deleteFrom('attestation').where('device_id', 'is', null).where('id', '<=', last.id).execute();
}

/** The run and the journal hear of the first refusal of each kind in an attempt: a node that keeps trying grows neither. */
async function keepOfNode(tx: Tx, at: Date, node: AttestingNode, evidence: Evidence): Promise<void> {
  const { attempt, deviceId } = node;
  const same = await tx
    .selectFrom('attestation')
    .select(['id', 'at'])
    .where('device_id', '=', deviceId)
    .where('accepted', '=', 0)
    .where('reason', '=', evidence.reason ?? null)
    .where((eb) => (attempt ? eb('boot_attempt', '=', attempt.bootAttempt) : eb('boot_attempt', 'is', null)))
    .orderBy('id', 'desc')
    .executeTakeFirst();
  if (same) await tx.deleteFrom('attestation').where('id', '=', same.id).execute();
  await tx.insertInto('attestation').values(evidence).execute();
  if (same && at.getTime() - Date.parse(same.at) < NEWS_AGAIN_MS) return;
  await appendJournal(tx, at, { deviceId, run: attempt?.run ?? null, kind: 'attestation', text: `attestation refused: ${evidence.reason}` });
  if (!attempt || same) return;
  const payload = { bootAttempt: attempt.bootAttempt, attestationId: evidence.id, accepted: false, reason: evidence.reason };
  await post(tx, at, { kind: 'signal-run', workflowId: runWorkflowId(deviceId, attempt.run), name: SIGNALS.attested.name, payload });
}
