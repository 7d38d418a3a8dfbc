/** Counts what happens in the transaction in which it happens: once, whoever tries again, and for good. */
import type { Failure } from '../domain/errors.js';
import { LIMIT_OF } from '../domain/limits.js';
import type { Tallied, Tally, TallyName } from '../contracts/tally.js';
import type { Db, Tx } from './database.js';

const keyOf = ({ labels }: Tallied): string => JSON.stringify(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => a.localeCompare(b))));

export async function tally(tx: Tx, ...things: readonly Tallied[]): Promise<void> {
  const rows = things.map((thing) => ({ what: thing.what, labels: keyOf(thing), times: 1, seconds: 'seconds' in thing ? thing.seconds : 0 }));
  // In one order, so that two transactions never wait for each other.
  rows.sort((a, b) => `${a.what} ${a.labels}`.localeCompare(`${b.what} ${b.labels}`));
  for (const row of rows) {
    await tx
      .insertInto('tally')
      .values(row)
      .onConflict((c) =>
        c.columns(['what', 'labels']).doUpdateSet((eb) => ({
          times: eb('tally.times', '+', eb.ref('excluded.times')),
          seconds: eb('tally.seconds', '+', eb.ref('excluded.seconds')),
        })),
      )
      .execute();
  }
}

/** A failure that says that a limit was passed counts as that too. */
export function limitPassedOf(failure: Pick<Failure, 'code'> | null): Tallied[] {
  const limit = failure && LIMIT_OF[failure.code];
  return limit ? [{ what: 'limit-passed', labels: { limit } }] : [];
}

export const heldFor = (hold: Failure): Tallied[] => [{ what: 'held', labels: { code: hold.code } }, ...limitPassedOf(hold)];

export const secondsBetween = (from: string, to: Date): number => Math.max(0, (to.getTime() - Date.parse(from)) / 1000);

export function createTally({ db }: { db: Db }): Tally {
  return {
    async all() {
      const rows = await db.selectFrom('tally').selectAll().orderBy('what').orderBy('labels').execute();
      return rows.map(({ what, labels, times, seconds }) => ({ what: what as TallyName, labels: JSON.parse(labels) as Record<string, string>, times, seconds }));
    },
  };
}
