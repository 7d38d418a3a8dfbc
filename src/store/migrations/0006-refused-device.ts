/** Devices that NetBox has and metalflow cannot begin with: why, and whether people were told. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('refused_device')
    .addColumn('device_id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('failure', 'text', (column) => column.notNull())
    .addColumn('since', 'text', (column) => column.notNull())
    .addColumn('told', 'integer', (column) => column.notNull())
    .execute();
}
