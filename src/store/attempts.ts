/** Boot attempts: one power-on that a run ordered. Everything that boot causes carries its id. */
import type { Disk } from '../domain/disks.js';
import { MetalflowError } from '../domain/errors.js';
import type { AttemptStore, FenceRef } from '../contracts/store.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { assertAttempt, assertHeld } from './fence.js';
import { newId } from './ids.js';
import { appendJournal } from './journal.js';
import { endOrdersOfFormerBoot } from './orders.js';
import { tally } from './tally.js';
import { revokeSessions } from './voiding.js';

const newAttempt = (ref: FenceRef, id: string) =>
  ({ id, device_id: ref.deviceId, run: ref.run, fence: ref.temporalRunId, closed_at: null, boot_seen_at: null, attested_at: null, disarmed_at: null, ak_thumbprint: null });

export function createAttemptStore({ db, now }: { db: Db; now: () => Date }): AttemptStore {
  return {
    open: (ref) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        const at = now();
        await tallyTriedAgain(tx, ref);
        await endFormerBoot(tx, ref.deviceId, at);
        const id = newId(at);
        await tx
          .insertInto('boot_attempt')
          .values({ ...newAttempt(ref, id), opened_at: at.toISOString() })
          .execute();
        await appendJournal(tx, at, { deviceId: ref.deviceId, run: ref.run, kind: 'boot', text: `boot attempt ${id} opened` });
        return { bootAttempt: id, number: await attemptsOf(tx, ref) };
      }),

    attested: (ref, bootAttempt) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertAttempt(tx, ref, bootAttempt);
        const row = await tx.selectFrom('attestation')
          .selectAll()
          .where('boot_attempt', '=', bootAttempt).where('accepted', '=', 1)
          .orderBy('id', 'desc')
          .executeTakeFirst();
        if (!row) return null;
        return { attestationId: row.id, disks: JSON.parse(row.disks ?? '[]') as Disk[], proof: row.proof as 'tpm' | 'unproven', akThumbprint: row.ak_thumbprint };
      }),

    bootSeen: (ref, bootAttempt) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertAttempt(tx, ref, bootAttempt);
        const row = await tx.selectFrom('boot_attempt').select('boot_seen_at').where('id', '=', bootAttempt).executeTakeFirstOrThrow();
        return row.boot_seen_at !== null;
      }),

    assertOpen: (ref, bootAttempt) => lockedTransaction(db, ref.deviceId, (tx) => assertAttempt(tx, ref, bootAttempt)),

    adoptIntake: (ref, attestationId) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        const row = await tx.selectFrom('attestation')
          .selectAll()
          .where('id', '=', attestationId).where('device_id', '=', ref.deviceId).where('accepted', '=', 1)
          .executeTakeFirst();
        // After a reset the node has acted in that boot, or may have: only a boot of the run's own, from power off, is a new one.
        const former = await tx.selectFrom('boot_attempt')
          .select('id')
          .where('device_id', '=', ref.deviceId).where('run', '=', ref.run).where('fence', '!=', ref.temporalRunId)
          .executeTakeFirst();
        if (!row || former) throw new MetalflowError('attempt_superseded', { attempt: attestationId });
        const at = now();
        await endFormerBoot(tx, ref.deviceId, at);
        const id = newId(at);
        await tx
          .insertInto('boot_attempt')
          .values({ ...newAttempt(ref, id), opened_at: row.at, boot_seen_at: row.at, ak_thumbprint: row.ak_thumbprint })
          .execute();
        await appendJournal(tx, at, { deviceId: ref.deviceId, run: ref.run, kind: 'boot', text: `the boot in which the node waits became attempt ${id}` });
        return { bootAttempt: id, number: await attemptsOf(tx, ref) };
      }),
  };
}

/** A boot that is tried again by the run that ordered it was waited for in vain. After a reset, nobody waited. */
async function tallyTriedAgain(tx: Tx, ref: FenceRef): Promise<void> {
  const former = await tx.selectFrom('boot_attempt')
    .select(['boot_seen_at', 'attested_at'])
    .where('device_id', '=', ref.deviceId).where('run', '=', ref.run).where('fence', '=', ref.temporalRunId).where('closed_at', 'is', null)
    .executeTakeFirst();
  if (!former || former.attested_at !== null) return;
  await tally(tx, { what: 'limit-passed', labels: { limit: former.boot_seen_at === null ? 'awaitingBoot' : 'awaitingAttestation' } });
}

/** The next boot closes the former attempt, revokes its token and ends its orders. */
async function endFormerBoot(tx: Tx, deviceId: string, at: Date): Promise<void> {
  await tx.updateTable('boot_attempt').set({ closed_at: at.toISOString() }).where('device_id', '=', deviceId).where('closed_at', 'is', null).execute();
  await revokeSessions(tx, deviceId, at);
  await endOrdersOfFormerBoot(tx, at, deviceId);
}

async function attemptsOf(tx: Tx, ref: FenceRef): Promise<number> {
  const { count } = await tx.selectFrom('boot_attempt')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('device_id', '=', ref.deviceId).where('run', '=', ref.run)
    .executeTakeFirstOrThrow();
  return Number(count);
}
