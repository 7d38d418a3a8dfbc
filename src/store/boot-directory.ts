/** The store, seen from the boot plane. */
import { MetalflowError } from '../domain/errors.js';
import { ENDED_STATES, type LifecycleState } from '../domain/states.js';
import type { BootDirectory, BootSubject } from '../contracts/boot.js';
import { runWorkflowId, SIGNALS } from '../contracts/messages.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { hintTransaction, lockDevice, type Db } from './database.js';
import { gathered } from './gathered.js';
import { distrust } from './installation.js';
import { appendJournal } from './journal.js';
import { post } from './outbox.js';

/** A sender's MAC is remembered for this long: addresses are leased again to other machines. */
const SENDER_SECONDS = 3600;
/** What was named longer ago than a boot takes is from an earlier one. */
const BOOT_SECONDS = 600;

export function createBootDirectory({ db, now, woken, crash = noCrash }: { db: Db; now: () => Date; woken: () => void; crash?: CrashPoint }): BootDirectory {
  /** A device and its permission, in one read: a fleet asks at once. */
  const devices = db
    .selectFrom('device')
    .leftJoin('permission', 'permission.device_id', 'device.device_id')
    .select(['device.device_id', 'device.name', 'device.state', 'device.system_uuid', 'device.open_run', 'permission.run', 'permission.boot_attempt', 'permission.expires_at']);

  async function subject(found: typeof devices): Promise<BootSubject | null> {
    const row = await found.executeTakeFirst();
    if (!row) return null;
    const { device_id: deviceId, run, boot_attempt: bootAttempt, expires_at: expiresAt } = row;
    // A permission is only as good as the run behind it.
    const isGood = run !== null && bootAttempt !== null && expiresAt !== null && row.open_run === run && (await distrust(db, deviceId)) === null;
    return { deviceId, name: row.name, state: row.state as LifecycleState, systemUuid: row.system_uuid, permission: isGood ? { run, bootAttempt, expiresAt } : null };
  }

  const byMac = (mac: string): Promise<BootSubject | null> => subject(devices.where('device.device_id', 'in', db.selectFrom('device_mac').select('device_id').where('mac', '=', mac)));

  const ago = (seconds: number): string => new Date(now().getTime() - seconds * 1000).toISOString();

  async function isEarlierBoot(at: string, { permission }: BootSubject): Promise<boolean> {
    const attempt = permission && (await db.selectFrom('boot_attempt').select('opened_at').where('id', '=', permission.bootAttempt).executeTakeFirst());
    return at < (attempt?.opened_at ?? ago(BOOT_SECONDS));
  }

  const guarded = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
    try {
      return await work(...args);
    } catch (error) {
      throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
    }
  };

  /** Of the last word of each address, and of each MAC. */
  const remember = gathered<{ readonly mac: string; readonly address: string }>(async (senders) => {
    const known = await db.selectFrom('device_mac').select('mac').where('mac', 'in', senders.map(({ mac }) => mac)).execute();
    const declared = new Set(known.map(({ mac }) => mac));
    const byAddress = new Map(senders.filter(({ mac }) => declared.has(mac)).map(({ mac, address }) => [address, mac]));
    const byMac = new Map([...byAddress].map(([address, mac]) => [mac, address]));
    if (byMac.size === 0) return;
    const at = now().toISOString();
    await hintTransaction(db, async (tx) => {
      // The address it had before is free for another machine, and the one that it has now is no other's.
      await tx.deleteFrom('sender').where((eb) => eb.or([eb('mac', 'in', [...byMac.keys()]), eb('address', 'in', [...byMac.values()])])).execute();
      await tx.insertInto('sender')
        .values([...byMac].map(([mac, address]) => ({ address, mac, at })))
        .onConflict((c) => c.column('address').doUpdateSet((eb) => ({ mac: eb.ref('excluded.mac'), at: eb.ref('excluded.at') })))
        .execute();
    });
  });

  const bootSeen = gathered<{ readonly id: string; readonly signal: AbortSignal | undefined }>(async (asked) => {
    const wanted = (): Set<string> => new Set(asked.filter(({ signal }) => !signal?.aborted).map(({ id }) => id));
    const attempts = await db.selectFrom('boot_attempt')
      .select(['id', 'device_id', 'run'])
      .where('id', 'in', [...wanted()]).where('boot_seen_at', 'is', null)
      .orderBy('device_id')
      .execute();
    if (attempts.length === 0) return;
    await db.transaction().execute(async (tx) => {
      // As lockedTransaction does, for all of them, in one order for everybody.
      for (const { device_id } of attempts) await lockDevice(tx, device_id);
      // A lock may have taken longer than who asked could wait: that node was given its disk, and no run may hear otherwise.
      const still = wanted();
      for (const { id, device_id, run } of attempts.filter(({ id }) => still.has(id))) {
        const seen = await tx.updateTable('boot_attempt')
          .set({ boot_seen_at: now().toISOString() })
          .where('id', '=', id).where('boot_seen_at', 'is', null).where('closed_at', 'is', null)
          .executeTakeFirst();
        if (seen.numUpdatedRows === 0n) continue;
        await post(tx, now(), { kind: 'signal-run', workflowId: runWorkflowId(device_id, run), name: SIGNALS.bootSeen.name, payload: { bootAttempt: id } });
        await appendJournal(tx, now(), { deviceId: device_id, run, kind: 'boot', text: `the node asked for its boot file in attempt ${id}` });
      }
      crash('boot-seen-before-commit');
    });
  });

  return {
    byMac: guarded(byMac),
    byAddress: guarded(async (address) => {
      const rows = await db
        .selectFrom('device_address').innerJoin('device', 'device.device_id', 'device_address.device_id').select('device.device_id')
        // A device that ended has left its address to the next.
        .where('address', '=', address).where('device.state', 'not in', [...ENDED_STATES]).execute();
      if (rows.length === 1) return subject(devices.where('device.device_id', '=', rows[0]!.device_id));
      // Two devices with one address: neither may be guessed.
      if (rows.length > 1) return null;
      const sender = await db.selectFrom('sender')
        .select(['mac', 'at'])
        .where('address', '=', address).where('at', '>=', ago(SENDER_SECONDS))
        .executeTakeFirst();
      const found = sender ? await byMac(sender.mac) : null;
      return found && (await isEarlierBoot(sender!.at, found)) ? { ...found, byEarlierBoot: true } : found;
    }),
    rememberSender: guarded((mac, address, signal) => remember({ mac, address }, signal)),
    forgetSender: guarded(async (address) => {
      // Looked for first: a stranger that asks again and again must not keep the store writing.
      const held = await db.selectFrom('sender').select('mac').where('address', '=', address).executeTakeFirst();
      if (held) await db.deleteFrom('sender').where('address', '=', address).execute();
    }),
    recordBootSeen: guarded(async (bootAttempt, signal) => {
      await bootSeen({ id: bootAttempt, signal }, signal);
      crash('boot-seen-before-answer');
      woken();
    }),
  };
}
