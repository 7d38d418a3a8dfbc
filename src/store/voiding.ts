/** What is void when a run ends or is reset, and when store and Temporal do not belong together. */
import { OPEN_ORDER_STATES } from '../domain/actions.js';
import type { Tx } from './database.js';

/** Orders cancelled, tokens revoked, attempts closed, permission gone. Install codes live on: an installed system may still come. */
export async function voidWhatIsOpen(tx: Tx, deviceId: string, at: Date, why: string): Promise<void> {
  const instant = at.toISOString();
  await tx.updateTable('agent_order')
    .set({ state: 'cancelled', closed_why: why, task_token: null })
    .where('device_id', '=', deviceId).where('state', 'in', [...OPEN_ORDER_STATES])
    .execute();
  await revokeSessions(tx, deviceId, at);
  await tx.updateTable('boot_attempt').set({ closed_at: instant }).where('device_id', '=', deviceId).where('closed_at', 'is', null).execute();
  await tx.deleteFrom('permission').where('device_id', '=', deviceId).execute();
}

/** As voidWhatIsOpen, and the install codes too: nothing that was given out before is good for anything. */
export async function voidAllOf(tx: Tx, deviceId: string, at: Date, why: string): Promise<void> {
  await voidWhatIsOpen(tx, deviceId, at, why);
  await tx.updateTable('install_code').set({ revoked_at: at.toISOString() }).where('device_id', '=', deviceId).where('revoked_at', 'is', null).execute();
}

export async function revokeSessions(tx: Tx, deviceId: string, at: Date): Promise<void> {
  await tx.updateTable('session').set({ revoked_at: at.toISOString() }).where('device_id', '=', deviceId).where('revoked_at', 'is', null).execute();
}
