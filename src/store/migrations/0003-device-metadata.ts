/** What NetBox says of a device that only its own metadata tell: contracts/metadata.ts, as JSON. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('device').addColumn('metadata', 'text').execute();
}
