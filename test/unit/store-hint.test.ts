/** Commits that need not be waited for until they are on the disk, between commits that must. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { hintTransaction, openDatabase, type Db } from '../../src/store/database.js';

const FULL = 2;
const NORMAL = 1;
const synchronous = async (db: Pick<Db, 'getExecutor'>): Promise<number> => (await sql<{ synchronous: number }>`pragma synchronous`.execute(db)).rows[0]!.synchronous;
const row = (address: string) => ({ address, mac: '02:01:48:aa:bb:0c', at: '2026-11-20T10:00:00Z' });

let dir: string;
let db: Db;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'metalflow-hint-'));
  db = await openDatabase(`sqlite:${join(dir, 'store.db')}`);
});
afterEach(async () => {
  await db.destroy();
  rmSync(dir, { recursive: true, force: true });
});

test('a hint is committed without the disk, and whoever writes after it waits for the disk again', async () => {
  expect(await synchronous(db)).toBe(FULL);
  const seen: number[] = [];
  await Promise.all([
    hintTransaction(db, async (tx) => {
      await tx.insertInto('sender').values(row('10.0.0.1')).execute();
      seen.push(await synchronous(tx));
    }),
    db.transaction().execute(async (tx) => void seen.push(await synchronous(tx))),
  ]);
  expect(seen).toEqual([NORMAL, FULL]);
  expect(await db.selectFrom('sender').select('address').execute()).toEqual([{ address: '10.0.0.1' }]);
});

test('one that fails is taken back whole, and the next commit waits for the disk', async () => {
  const failing = hintTransaction(db, async (tx) => {
    await tx.insertInto('sender').values(row('10.0.0.1')).execute();
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect([await synchronous(db), await db.selectFrom('sender').select('address').execute()]).toEqual([FULL, []]);
});
