/** The power watch: where a device's BMC is, when it last answered, what was told of its power; and when each site was walked over. */
import type { Kysely } from 'kysely';

const DEVICE_COLUMNS = ['bmc', 'bmc_seen_at', 'power_told', 'power_drift'] as const;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of DEVICE_COLUMNS) await db.schema.alterTable('device').addColumn(name, 'text').execute();
  await db.schema
    .createTable('power_watch')
    .addColumn('site', 'text', (column) => column.notNull().primaryKey())
    .addColumn('every_seconds', 'integer', (column) => column.notNull())
    .addColumn('since', 'text', (column) => column.notNull())
    .addColumn('walked_at', 'text')
    .execute();
}
