/** Do the store and Temporal belong together? If not, nothing is served, handed out or powered until a person adopts. */
import { failure, MetalflowError, type Failure } from '../domain/errors.js';
import { ENDED_STATES } from '../domain/states.js';
import type { InstallationStore } from '../contracts/store.js';
import type { Db, Tx } from './database.js';
import { appendJournal } from './journal.js';
import { tally } from './tally.js';
import { voidAllOf } from './voiding.js';

/** Why this device may not be acted on; null when it may. */
export async function distrust(db: Db | Tx, deviceId: string): Promise<string | null> {
  const installation = await db.selectFrom('installation').selectAll().executeTakeFirst();
  if (!installation || installation.status === 'pending') return 'the installation is not confirmed by Temporal yet';
  const device = await db.selectFrom('device').select(['adopted_epoch', 'hold']).where('device_id', '=', deviceId).executeTakeFirst();
  if (device && device.adopted_epoch >= installation.epoch && installation.status === 'confirmed') return null;
  const hold = device?.hold ? (JSON.parse(device.hold) as Failure) : null;
  if (hold?.code === 'installation_mismatch' && hold.details?.['why']) return String(hold.details['why']);
  return installation.why ?? (device ? 'the device was not adopted since the last mismatch' : 'the store does not know the device');
}

export async function assertTrusted(db: Db | Tx, deviceId: string): Promise<void> {
  const why = await distrust(db, deviceId);
  if (why) throw new MetalflowError('installation_mismatch', { why });
}

/** The epoch a newly registered device starts in: trusted while store and Temporal belong together. */
export async function epochForNewDevice(db: Db | Tx): Promise<number> {
  const installation = await db.selectFrom('installation').select(['epoch', 'status']).executeTakeFirst();
  if (!installation) return 0;
  return installation.status === 'mismatch' ? installation.epoch - 1 : installation.epoch;
}

export function createInstallationStore({ db, now }: { db: Db; now: () => Date }): InstallationStore {
  async function holdAndVoid(tx: Tx, deviceId: string, why: string): Promise<void> {
    await voidAllOf(tx, deviceId, now(), 'store and Temporal do not belong together');
    // Whatever its run waited for, this comes first.
    await tx.updateTable('run').set({ hold: null }).where('device_id', '=', deviceId).where('closed_at', 'is', null).execute();
    await tx.updateTable('device').set({ hold: JSON.stringify(failure('installation_mismatch', { why })) }).where('device_id', '=', deviceId).execute();
    await tally(tx, { what: 'held', labels: { code: 'installation_mismatch' } });
    await appendJournal(tx, now(), { deviceId, run: null, kind: 'hold', text: `held: ${why}` });
  }

  return {
    async read() {
      const row = await db.selectFrom('installation').selectAll().executeTakeFirst();
      return row ? { id: row.installation_id, status: row.status, why: row.why } : null;
    },
    async begin(id) {
      await db.insertInto('installation')
        .values({ row: 1, installation_id: id, status: 'pending', epoch: 0, why: null, since: now().toISOString() })
        .onConflict((c) => c.doNothing())
        .execute();
    },
    async confirm() {
      await db.updateTable('installation').set({ status: 'confirmed', why: null, since: now().toISOString() }).where('status', '=', 'pending').execute();
    },
    async mismatch(why) {
      await db.transaction().execute(async (tx) => {
        const changed = await tx.updateTable('installation')
          .set((eb) => ({ status: 'mismatch' as const, epoch: eb('epoch', '+', 1), why, since: now().toISOString() }))
          .where('status', '!=', 'mismatch')
          .executeTakeFirst();
        if (changed.numUpdatedRows === 0n) return;
        for (const { device_id: deviceId } of await tx.selectFrom('device').select('device_id').where('state', 'not in', [...ENDED_STATES]).execute()) await holdAndVoid(tx, deviceId, why);
      });
    },
    async relink(id) {
      await db.updateTable('installation')
        .set({ installation_id: id, status: 'confirmed', since: now().toISOString() })
        .where('status', '=', 'mismatch')
        .execute();
    },
    distrust: (deviceId) => distrust(db, deviceId),
    async adopt(deviceId, by) {
      await db.transaction().execute(async (tx) => {
        const { epoch } = await tx.selectFrom('installation').select('epoch').executeTakeFirstOrThrow();
        await tx.updateTable('device').set({ adopted_epoch: epoch, hold: null }).where('device_id', '=', deviceId).execute();
        await appendJournal(tx, now(), { deviceId, run: null, kind: 'verb', text: 'adopted: store and machine belong together', by });
      });
    },
    async distrustDevice(deviceId, why) {
      await db.transaction().execute(async (tx) => {
        const { epoch } = await tx.selectFrom('installation').select('epoch').executeTakeFirstOrThrow();
        await tx.updateTable('device').set({ adopted_epoch: epoch - 1 }).where('device_id', '=', deviceId).execute();
        await holdAndVoid(tx, deviceId, why);
      });
    },
  };
}
