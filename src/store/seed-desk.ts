/** Install codes redeemed by installed systems, and what their seeds are rendered from. */
import type { Selectable } from 'kysely';
import { MetalflowError } from '../domain/errors.js';
import { DEFAULT_LIMITS, type Limits } from '../domain/limits.js';
import type { Redemption, SeedDesk } from '../contracts/agent-desk.js';
import { runWorkflowId, SIGNALS } from '../contracts/messages.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { lockedTransaction, type Db } from './database.js';
import { distrust } from './installation.js';
import { hashSecret } from './ids.js';
import { voidOtherCodes } from './install-codes.js';
import { appendJournal } from './journal.js';
import { post } from './outbox.js';
import type { InstallCodeTable } from './schema.js';
import { readSubject } from './seed-subject.js';

type Code = Selectable<InstallCodeTable>;

export function createSeedDesk({ db, now, woken, limits = DEFAULT_LIMITS, crash = noCrash }: { db: Db; now: () => Date; woken: () => void; limits?: Limits; crash?: CrashPoint }): SeedDesk {
  /** Within its hour once; then for a while again by the same machine from the same address. */
  function isGood(code: Code, sender: string): boolean {
    const at = now();
    if (code.redeemed_at === null) return code.expires_at >= at.toISOString();
    return code.redeemer === sender && at.getTime() - Date.parse(code.redeemed_at) <= limits.installCodeRepeat * 1000;
  }

  async function use(input: { code: string; systemUuid: string; sender: string }, how: 'seed-fetched' | 'phone-home'): Promise<Redemption> {
    const found = await db.selectFrom('install_code').select('device_id').where('code_hash', '=', hashSecret(input.code)).executeTakeFirst();
    if (!found) return { kind: 'unknown' };
    const redemption = await lockedTransaction<Redemption>(db, found.device_id, async (tx) => {
      const code = await tx.selectFrom('install_code').selectAll().where('code_hash', '=', hashSecret(input.code)).executeTakeFirstOrThrow();
      // A code of another machine is as unknown as a wrong one.
      if (code.system_uuid !== input.systemUuid || code.revoked_at !== null || (await distrust(tx, code.device_id))) return { kind: 'unknown' };
      if (!isGood(code, input.sender)) return { kind: 'spent' };
      const first = code.redeemed_at === null;
      const at = now();
      if (first) {
        await voidOtherCodes(tx, at, code.device_id, code.code_hash);
        await tx.updateTable('install_code').set({ redeemed_at: at.toISOString(), redeemer: input.sender }).where('code_hash', '=', code.code_hash).execute();
        const did = how === 'seed-fetched' ? 'fetched its seed' : 'phoned home';
        await appendJournal(tx, at, { deviceId: code.device_id, run: code.run, kind: 'boot', text: `the installed system ${did} from ${input.sender}` });
      }
      // Each is told once: a class that is confirmed by phoning home is not confirmed by the fetch before it.
      const phonesHome = how === 'phone-home' && code.seen_at === null;
      if (phonesHome) await tx.updateTable('install_code').set({ seen_at: at.toISOString() }).where('code_hash', '=', code.code_hash).execute();
      if (phonesHome || (how === 'seed-fetched' && first)) {
        await post(tx, at, { kind: 'signal-run', workflowId: runWorkflowId(code.device_id, code.run), name: SIGNALS.systemSeen.name, payload: { run: code.run, how } });
      }
      const device = await tx.selectFrom('device').select('name').where('device_id', '=', code.device_id).executeTakeFirstOrThrow();
      crash('seed-redeem-before-commit');
      return { kind: 'redeemed', deviceId: code.device_id, nodeName: device.name, run: code.run, systemUuid: code.system_uuid, first };
    });
    crash('seed-redeem-before-answer');
    woken();
    return redemption;
  }

  return {
    redeem: (input) => use(input, 'seed-fetched'),
    seen: (input) => use(input, 'phone-home'),
    async subject(deviceId, run) {
      const subject = await readSubject(db, deviceId, run);
      if (!subject) throw new MetalflowError('run_not_found', { run: `${deviceId}/${run}` });
      return subject;
    },
  };
}
