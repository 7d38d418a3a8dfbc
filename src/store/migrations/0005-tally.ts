/** What is counted where it happens, so that no restart forgets it and no retention takes it back. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('tally')
    .addColumn('what', 'text', (column) => column.notNull())
    .addColumn('labels', 'text', (column) => column.notNull())
    .addColumn('times', 'integer', (column) => column.notNull())
    .addColumn('seconds', 'double precision', (column) => column.notNull())
    .addPrimaryKeyConstraint('tally_row', ['what', 'labels'])
    .execute();
}
