/** What happened to a node, in words for people. */
import type { JournalLine } from '../contracts/operator.js';
import type { Db, Tx } from './database.js';
import { newId } from './ids.js';

export interface JournalEntry {
  readonly deviceId: string;
  readonly run: number | null;
  readonly kind: 'run' | 'phase' | 'hold' | 'power' | 'boot' | 'attestation' | 'order' | 'permission' | 'fence' | 'verb' | 'state' | 'netbox';
  readonly text: string;
  readonly by?: string;
}

export async function appendJournal(db: Db | Tx, at: Date, entry: JournalEntry): Promise<void> {
  await db
    .insertInto('journal')
    .values({ id: newId(at), device_id: entry.deviceId, run: entry.run, at: at.toISOString(), kind: entry.kind, text: entry.text.slice(0, 2000), by_whom: entry.by ?? null })
    .execute();
}

/** Newest first. */
export async function readJournal(db: Db, deviceId: string, limit: number): Promise<JournalLine[]> {
  const rows = await db.selectFrom('journal').selectAll().where('device_id', '=', deviceId).orderBy('id', 'desc').limit(limit).execute();
  return rows.map((row) => ({ at: row.at, run: row.run, kind: row.kind, text: row.text, by: row.by_whom }));
}
