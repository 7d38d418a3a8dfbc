/** The codes by which an installed system proves that this run installed it: given out, kept good, and void. */
import type { RunPhase } from '../domain/runs.js';
import type { FenceRef } from '../contracts/store.js';
import type { Tx } from './database.js';
import { hashSecret, newSecret } from './ids.js';

/** From here on the installed system may come. */
const AWAITS_SYSTEM: readonly RunPhase[] = ['rebooting', 'confirming'];

/**
 * A new code for the agent that attested. The former ones are void, an agent that attests again has lost its own; but where a seed
 * was ordered and taken in this run, the code that is written on the disk stays good, since that seed is not written a second time.
 */
export async function issueInstallCode(tx: Tx, at: Date, { deviceId, run, systemUuid, expiresAt }: { deviceId: string; run: number; systemUuid: string; expiresAt: string }): Promise<string> {
  const written = await tx.selectFrom('agent_order')
    .select('id')
    .where('device_id', '=', deviceId).where('run', '=', run).where('action_name', '=', 'write-seed').where('consumed_at', 'is not', null)
    .executeTakeFirst();
  let former = tx.updateTable('install_code').set({ revoked_at: at.toISOString() }).where('device_id', '=', deviceId).where('revoked_at', 'is', null);
  if (written) former = former.where('run', '!=', run);
  await former.execute();
  const code = newSecret();
  await tx.insertInto('install_code')
    .values({ code_hash: hashSecret(code), device_id: deviceId, run, system_uuid: systemUuid, expires_at: expiresAt, redeemed_at: null, redeemer: null, seen_at: null, revoked_at: null })
    .execute();
  return code;
}

/** However long the install took, or a person with it: the hour begins when the installed system may come. */
export async function prolongInstallCodes(tx: Tx, { deviceId, run }: FenceRef, phase: RunPhase, expiresAt: string): Promise<void> {
  if (!AWAITS_SYSTEM.includes(phase)) return;
  await tx.updateTable('install_code')
    .set({ expires_at: expiresAt })
    .where('device_id', '=', deviceId).where('run', '=', run).where('redeemed_at', 'is', null).where('revoked_at', 'is', null)
    .where('expires_at', '<', expiresAt)
    .execute();
}

/** One system came: the codes of boots before it are nobody's. */
export async function voidOtherCodes(tx: Tx, at: Date, deviceId: string, used: string): Promise<void> {
  await tx.updateTable('install_code')
    .set({ revoked_at: at.toISOString() })
    .where('device_id', '=', deviceId).where('code_hash', '!=', used).where('redeemed_at', 'is', null).where('revoked_at', 'is', null)
    .execute();
}
