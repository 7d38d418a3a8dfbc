/** What the store holds, a digest a table, so that a test can say that nothing has changed. */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Db } from '../../../src/store/index.js';

/** @param except tables that may change: evidence, audit, and what every look at NetBox writes */
export async function storeDigest(db: Db, except: readonly string[]): Promise<Record<string, string>> {
  const tables = await db.introspection.getTables();
  const names = tables.map(({ name }) => name).filter((name) => !except.includes(name)).sort();
  const digests: Record<string, string> = {};
  for (const name of names) {
    const { rows } = await sql`select * from ${sql.table(name)}`.execute(db);
    const lines = rows.map((row) => JSON.stringify(row)).sort();
    digests[name] = `${rows.length} rows ${createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16)}`;
  }
  return digests;
}
