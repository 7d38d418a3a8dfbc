/** What the power watch keeps: on each device's row what was read and told, and for each site when it was walked over. */
import type { PowerWord } from '../domain/power.js';
import { EXPECTED_POWER, isSameDrift, judgePower, type PowerDrift } from '../domain/power-expected.js';
import { ENDED_STATES, isOneOf, type LifecycleState } from '../domain/states.js';
import type { BmcAddress } from '../contracts/device.js';
import type { PowerWatchStore } from '../contracts/power-watch.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { appendJournal } from './journal.js';

/** A person works on the first, the BMC of the second was said to be gone, and the third is no longer ours. */
const UNWATCHED: readonly LifecycleState[] = ['maintenance', 'retired-unproven', 'withdrawn'];
/** A node that is retired is looked at for so long: somebody may power it on again. Then it may be scrapped, and a dead BMC holds a walk up. */
const RETIRED_WATCH_MS = 24 * 3600 * 1000;

const addressOf = (bmc: string | null): BmcAddress | null => (bmc === null ? null : (JSON.parse(bmc) as BmcAddress));
const storedDrift = (json: string | null): PowerDrift | null => (json === null ? null : (JSON.parse(json) as PowerDrift));
/** One that was judged in a state that was left since says nothing any more. */
export function driftOf(row: { readonly state: string; readonly power_drift: string | null }): PowerDrift | null {
  const drift = storedDrift(row.power_drift);
  return drift?.state === row.state ? drift : null;
}

export function createPowerWatchStore({ db, now }: { db: Db; now: () => Date }): PowerWatchStore {
  return {
    async nodes(site) {
      const rows = await db.selectFrom('device').selectAll().where('site', '=', site).where('bmc', 'is not', null).where('state', 'not in', [...UNWATCHED])
        .where((eb) => eb.or([eb('state', '!=', 'retired'), eb('state_since', '>=', new Date(now().getTime() - RETIRED_WATCH_MS).toISOString())])).orderBy('power_at').execute();
      return rows.flatMap((row) => {
        const bmc = addressOf(row.bmc);
        return bmc && bmc.type !== 'manual' ? [{ deviceId: row.device_id, name: row.name, bmc, systemUuid: row.system_uuid, power: row.power as PowerWord }] : [];
      });
    },

    saw: (deviceId, power) =>
      lockedTransaction(db, deviceId, async (tx) => {
        await keepPower(tx, now(), deviceId, power);
        const row = await tx.selectFrom('device').select(['state', 'power_drift', 'power_told']).where('device_id', '=', deviceId).executeTakeFirst();
        if (!row) return { tell: null, drift: null, driftChanged: false };
        const state = row.state as LifecycleState;
        const before = storedDrift(row.power_drift);
        const verdict = judgePower(state, power);
        const drift = verdict.kind === 'says-nothing' ? before : verdict.kind === 'drift' ? verdict.drift : null;
        const driftChanged = !isSameDrift(before, drift);
        if (driftChanged) {
          await tx.updateTable('device').set({ power_drift: drift && JSON.stringify(drift) }).where('device_id', '=', deviceId).execute();
          const fitsAgain = `the power fits again: ${state}, and the BMC reads ${power}`;
          const isOver = `the power drift is over: nothing is expected of a node that is ${state} (${EXPECTED_POWER[state].because})`;
          await appendJournal(tx, now(), { deviceId, run: null, kind: 'power', text: drift ? driftText(drift) : verdict.kind === 'fits' ? fitsAgain : isOver });
        }
        // An AMT that settles has news in a moment.
        return { tell: power === 'settling' || power === row.power_told ? null : power, drift, driftChanged };
      }),

    async told(deviceId, power) {
      await db.updateTable('device').set({ power_told: power }).where('device_id', '=', deviceId).execute();
    },

    async plan(site, everySeconds) {
      if (everySeconds === null) return void (await db.deleteFrom('power_watch').where('site', '=', site).execute());
      await db.insertInto('power_watch')
        .values({ site, every_seconds: everySeconds, since: now().toISOString(), walked_at: null })
        .onConflict((c) => c.column('site').doUpdateSet({ every_seconds: everySeconds }))
        .execute();
    },
    async walked(site) {
      await db.updateTable('power_watch').set({ walked_at: now().toISOString() }).where('site', '=', site).execute();
    },
    async plans() {
      const rows = await db.selectFrom('power_watch').selectAll().orderBy('site').execute();
      return rows.map((row) => ({ site: row.site, everySeconds: row.every_seconds, since: row.since, walkedAt: row.walked_at }));
    },

    async all() {
      const rows = await db.selectFrom('device').selectAll().orderBy('name').execute();
      return rows.map((row) => {
        const state = row.state as LifecycleState;
        const type = addressOf(row.bmc)?.type ?? 'manual';
        return {
          deviceId: row.device_id, name: row.name, state, power: row.power as PowerWord, bmcSeenAt: row.bmc_seen_at,
          drift: driftOf(row),
          hasToAnswer: type !== 'manual' && !isOneOf(UNWATCHED, state) && !isOneOf(ENDED_STATES, state),
        };
      });
    },
  };
}

/** What was read, and when; and that the BMC answered, when it did. */
export async function keepPower(db: Db | Tx, at: Date, deviceId: string, power: PowerWord): Promise<void> {
  const answered = power !== 'unknown' && power !== 'settling';
  await db.updateTable('device')
    .set({ power, power_at: at.toISOString(), ...(answered && { bmc_seen_at: at.toISOString() }) })
    .where('device_id', '=', deviceId)
    .execute();
}

/** The same of a run's reading. The lifecycle takes its power from the row when the run ends, so what the watch told it before counts no more. */
export async function keepPowerOfRun(db: Db | Tx, at: Date, deviceId: string, power: PowerWord): Promise<void> {
  await keepPower(db, at, deviceId, power);
  await db.updateTable('device').set({ power_told: null }).where('device_id', '=', deviceId).where('power_told', '!=', power).execute();
}

const driftText = ({ state, expected, reads }: PowerDrift): string =>
  `power drift: ${state} should be ${expected} (${EXPECTED_POWER[state].because}), and the BMC reads ${reads}; nothing was commanded`;
