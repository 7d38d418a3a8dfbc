/** What the past is kept for: journals, logs, evidence, told messages. Runs, orders and the audit are kept for good. */
import type { Db } from './database.js';

/** @returns rows forgotten */
export async function forgetBefore(db: Db, before: Date): Promise<number> {
  const instant = before.toISOString();
  const open = db.selectFrom('boot_attempt').select('id').where('closed_at', 'is', null);
  const results = [
    await db.deleteFrom('journal').where('at', '<', instant).executeTakeFirst(),
    // Evidence that an open attempt stands on is not past.
    await db.deleteFrom('attestation').where('at', '<', instant).where((eb) => eb.or([eb('boot_attempt', 'is', null), eb('boot_attempt', 'not in', open)])).executeTakeFirst(),
    await db.deleteFrom('outbox').where('delivered_at', 'is not', null).where('delivered_at', '<', instant).executeTakeFirst(),
    await db.deleteFrom('session').where('expires_at', '<', instant).executeTakeFirst(),
    await db.deleteFrom('install_code').where('expires_at', '<', instant).executeTakeFirst(),
    await db.deleteFrom('challenge').where('expires_at', '<', instant).executeTakeFirst(),
    await db.deleteFrom('node_log').where('received_at', '<', instant).executeTakeFirst(),
    await db.deleteFrom('sender').where('at', '<', instant).executeTakeFirst(),
  ];
  return results.reduce((sum, result) => sum + Number(result.numDeletedRows), 0);
}
