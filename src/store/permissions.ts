/** Netboot permission: a lease. Expired means no; nothing but the run that owns the attempt renews it. */
import { MetalflowError } from '../domain/errors.js';
import type { PermissionStore } from '../contracts/store.js';
import { lockedTransaction, type Db } from './database.js';
import { assertAttempt, assertHeld } from './fence.js';

export function createPermissionStore({ db, now }: { db: Db; now: () => Date }): PermissionStore {
  return {
    lease: (ref, bootAttempt, seconds) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertAttempt(tx, ref, bootAttempt);
        const { disarmed_at: disarmed } = await tx.selectFrom('boot_attempt').select('disarmed_at').where('id', '=', bootAttempt).executeTakeFirstOrThrow();
        if (disarmed !== null) throw new MetalflowError('attempt_superseded', { attempt: bootAttempt });
        const lease = { run: ref.run, boot_attempt: bootAttempt, expires_at: new Date(now().getTime() + seconds * 1000).toISOString() };
        await tx.insertInto('permission').values({ device_id: ref.deviceId, ...lease }).onConflict((c) => c.column('device_id').doUpdateSet(lease)).execute();
      }),
    withdraw: (ref) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        await tx.updateTable('boot_attempt')
          .set({ disarmed_at: now().toISOString() })
          .where('device_id', '=', ref.deviceId).where('closed_at', 'is', null)
          .execute();
        await tx.deleteFrom('permission').where('device_id', '=', ref.deviceId).execute();
      }),
  };
}
