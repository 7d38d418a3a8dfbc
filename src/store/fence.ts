/**
 * One fence a run: the Temporal run id that may act for it. A reset makes a new Temporal run of the same workflow id; its first
 * activity takes the fence over and voids what the former one had opened. Anything older is refused.
 */
import { MetalflowError } from '../domain/errors.js';
import type { Fence, FenceRef } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { assertTrusted } from './installation.js';
import { appendJournal } from './journal.js';
import { voidWhatIsOpen } from './voiding.js';

export function createFence({ db, temporal, now }: { db: Db; temporal: Pick<TemporalPort, 'look'>; now: () => Date }): Fence {
  return {
    async enter(ref) {
      const holder = await holderOf(db, ref);
      if (holder === ref.temporalRunId) return 'held';
      if (holder !== null) {
        // Only Temporal knows which of the two is the run's present self.
        const look = await temporal.look(ref.workflowId);
        if (look.kind !== 'running' || look.runId !== ref.temporalRunId) throw new MetalflowError('run_stale');
      }
      return lockedTransaction(db, ref.deviceId, async (tx) => {
        const current = await holderOf(tx, ref);
        if (current === ref.temporalRunId) return 'held';
        if (current !== holder) throw new MetalflowError('run_stale');
        await tx.updateTable('run').set({ fence: ref.temporalRunId }).where('device_id', '=', ref.deviceId).where('number', '=', ref.run).execute();
        if (holder === null) return 'held';
        await voidWhatIsOpen(tx, ref.deviceId, now(), 'the run was reset');
        const text = `the run was reset: Temporal run ${ref.temporalRunId} took over from ${holder}; its orders, tokens, attempt and permission are void`;
        await appendJournal(tx, now(), { deviceId: ref.deviceId, run: ref.run, kind: 'fence', text });
        return 'taken-over';
      });
    },
  };
}

/** The Temporal run that holds the fence of an open run. */
async function holderOf(db: Db | Tx, ref: FenceRef): Promise<string | null> {
  const run = await db.selectFrom('run').select(['fence', 'closed_at']).where('device_id', '=', ref.deviceId).where('number', '=', ref.run).executeTakeFirst();
  if (!run) throw new MetalflowError('installation_mismatch', { why: `the store has no run ${ref.run} of device ${ref.deviceId}` });
  if (run.closed_at) throw new MetalflowError('run_closed');
  await assertTrusted(db, ref.deviceId);
  return run.fence;
}

/** Inside the transaction of an effect: the ref holds the fence still. */
export async function assertHeld(tx: Tx, ref: FenceRef): Promise<void> {
  if ((await holderOf(tx, ref)) !== ref.temporalRunId) throw new MetalflowError('run_stale');
}

/** Inside a transaction: this fence opened the attempt, whether it is open still or not. What came of an order of a former fence says nothing to a reset run. */
export async function assertFence(tx: Tx, ref: FenceRef, bootAttempt: string): Promise<void> {
  await assertHeld(tx, ref);
  const attempt = await tx.selectFrom('boot_attempt').select('fence').where('id', '=', bootAttempt).executeTakeFirst();
  if (attempt?.fence !== ref.temporalRunId) throw new MetalflowError('attempt_superseded', { attempt: bootAttempt });
}

/** Inside the transaction of an effect: the attempt is open, and this fence opened it. */
export async function assertAttempt(tx: Tx, ref: FenceRef, bootAttempt: string): Promise<void> {
  await assertHeld(tx, ref);
  const attempt = await tx.selectFrom('boot_attempt').select(['fence', 'closed_at', 'device_id', 'run']).where('id', '=', bootAttempt).executeTakeFirst();
  const isOurs = attempt && attempt.closed_at === null && attempt.fence === ref.temporalRunId && attempt.device_id === ref.deviceId && attempt.run === ref.run;
  if (!isOurs) throw new MetalflowError('attempt_superseded', { attempt: bootAttempt });
}
