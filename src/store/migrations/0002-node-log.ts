/** What nodes say over syslog. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('node_log')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('run', 'integer')
    .addColumn('at', 'text', (column) => column.notNull())
    .addColumn('received_at', 'text', (column) => column.notNull())
    .addColumn('severity', 'integer', (column) => column.notNull())
    .addColumn('facility', 'integer', (column) => column.notNull())
    .addColumn('host', 'text', (column) => column.notNull())
    .addColumn('program', 'text')
    .addColumn('message', 'text', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('node_log_of_device').on('node_log').columns(['device_id', 'id']).execute();
  await db.schema.createIndex('node_log_of_run').on('node_log').columns(['device_id', 'run', 'id']).execute();
  await db.schema.createIndex('node_log_by_time').on('node_log').columns(['received_at']).execute();
}
