/** Power intents (written before the wire) and the lease on one BMC. */
import type { CommandResult } from '../contracts/bmc.js';
import type { BmcLeaseTerms, HandIntents, PowerStore } from '../contracts/store.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { assertHeld } from './fence.js';
import { appendJournal } from './journal.js';

/** Runs are counted from 1. */
const BETWEEN_RUNS = 0;

export function createPowerStore({ db, now }: { db: Db; now: () => Date }): PowerStore & HandIntents {
  return {
    intend: (ref, intent, lease) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        if (lease && !(await takeLease(tx, now(), lease))) return { kind: 'lease-lost' };
        const row = await tx.selectFrom('power_intent').selectAll().where('id', '=', intent.id).executeTakeFirst();
        if (row) return { kind: 'again', answer: row.answer === null ? null : (JSON.parse(row.answer) as CommandResult), writtenAt: row.written_at };
        await tx
          .insertInto('power_intent')
          .values({ id: intent.id, device_id: ref.deviceId, run: ref.run, command: intent.command, written_at: now().toISOString(), answered_at: null, answer: null })
          .execute();
        return { kind: 'first' };
      }),
    intendByHand: (deviceId, { id, command, text, by, duringRun }, lease) =>
      lockedTransaction(db, deviceId, async (tx) => {
        const device = await tx.selectFrom('device').select('open_run').where('device_id', '=', deviceId).executeTakeFirst();
        const run = device?.open_run ?? null;
        if (run !== null && !duringRun) return { kind: 'run-open', run };
        if (!(await takeLease(tx, now(), lease))) return { kind: 'lease-lost' };
        await tx.insertInto('power_intent')
          .values({ id, device_id: deviceId, run: run ?? BETWEEN_RUNS, command, written_at: now().toISOString(), answered_at: null, answer: null })
          .execute();
        await appendJournal(tx, now(), { deviceId, run, kind: 'power', text, by });
        return { kind: 'written' };
      }),
    async answered(id, answer) {
      await db.updateTable('power_intent').set({ answered_at: now().toISOString(), answer: JSON.stringify(answer) }).where('id', '=', id).execute();
    },
    lock: (bmc, holder, seconds) => takeLease(db, now(), { bmc, holder, seconds }),
    async unlock(bmc, holder) {
      await db.deleteFrom('bmc_lock').where('bmc', '=', bmc).where('holder', '=', holder).execute();
    },
    async lastChangeAt(deviceId) {
      const rows = await db.selectFrom('power_intent')
        .select(['written_at', 'answer'])
        .where('device_id', '=', deviceId).where('command', 'in', ['off', 'on'])
        .orderBy('written_at', 'desc').limit(20)
        .execute();
      return rows.find(({ answer }) => mayHaveChanged(answer))?.written_at ?? null;
    },
  };
}

/** A command that was refused, or never reached the BMC, changed nothing; one without an answer may have. */
function mayHaveChanged(answer: string | null): boolean {
  if (answer === null) return true;
  const { kind } = JSON.parse(answer) as CommandResult;
  return kind === 'accepted' || kind === 'unknown';
}

/** Takes the lease when it is free, over or ours already. */
async function takeLease(db: Db | Tx, at: Date, { bmc, holder, seconds }: BmcLeaseTerms): Promise<boolean> {
  const lease = { holder, expires_at: new Date(at.getTime() + seconds * 1000).toISOString() };
  const taken = await db
    .insertInto('bmc_lock')
    .values({ bmc, ...lease })
    .onConflict((c) => c.column('bmc').doUpdateSet(lease).where((eb) => eb.or([eb('bmc_lock.expires_at', '<', at.toISOString()), eb('bmc_lock.holder', '=', holder)])))
    .returning('bmc')
    .executeTakeFirst();
  return taken !== undefined;
}
