/** Devices that NetBox has and metalflow cannot begin with. */
import type { Selectable } from 'kysely';
import type { Failure } from '../domain/errors.js';
import type { RefusedDevice, RefusedDevices } from '../contracts/store.js';
import { lockedTransaction, type Db } from './database.js';
import type { RefusedDeviceTable } from './schema.js';

const toRefused = (row: Selectable<RefusedDeviceTable>): RefusedDevice => ({ deviceId: row.device_id, name: row.name, failure: JSON.parse(row.failure) as Failure, since: row.since, isTold: row.told === 1 });

export const listRefused = async (db: Db): Promise<RefusedDevice[]> => (await db.selectFrom('refused_device').selectAll().orderBy('name').orderBy('device_id').execute()).map(toRefused);

export function createRefusedDevices({ db, now }: { db: Db; now: () => Date }): RefusedDevices {
  async function find(deviceId: string): Promise<RefusedDevice | null> {
    const row = await db.selectFrom('refused_device').selectAll().where('device_id', '=', deviceId).executeTakeFirst();
    return row ? toRefused(row) : null;
  }
  return {
    find,
    keep: (deviceId, name, why) =>
      lockedTransaction(db, deviceId, async (tx) => {
        const before = await tx.selectFrom('refused_device').select('failure').where('device_id', '=', deviceId).executeTakeFirst();
        if (before && (JSON.parse(before.failure) as Failure).message === why.message) return void (await tx.updateTable('refused_device').set({ name }).where('device_id', '=', deviceId).execute());
        const values = { name, failure: JSON.stringify(why), since: now().toISOString(), told: 0 };
        await tx.insertInto('refused_device').values({ device_id: deviceId, ...values }).onConflict((c) => c.column('device_id').doUpdateSet(values)).execute();
      }),
    async told(deviceId) {
      await db.updateTable('refused_device').set({ told: 1 }).where('device_id', '=', deviceId).execute();
    },
    async forget(deviceId) {
      await db.deleteFrom('refused_device').where('device_id', '=', deviceId).execute();
    },
  };
}
