/** Opens the store: SQLite embedded, PostgreSQL shared. One door, the same queries. */
import { existsSync } from 'node:fs';
import { Kysely, Migrator, PostgresDialect, sql, SqliteAdapter, type Transaction } from 'kysely';
import pg from 'pg';
import { MetalflowError } from '../domain/errors.js';
import type { Schema } from './schema.js';
import * as first from './migrations/0001-first.js';
import * as nodeLog from './migrations/0002-node-log.js';
import * as deviceMetadata from './migrations/0003-device-metadata.js';
import * as powerWatch from './migrations/0004-power-watch.js';
import * as tally from './migrations/0005-tally.js';
import * as refusedDevice from './migrations/0006-refused-device.js';
import { SharedFileDialect } from './sqlite.js';

export type Db = Kysely<Schema>;
export type Tx = Transaction<Schema>;

const isSqlite = (db: Db): boolean => db.getExecutor().adapter instanceof SqliteAdapter;

const MIGRATIONS = { '0001-first': first, '0002-node-log': nodeLog, '0003-device-metadata': deviceMetadata, '0004-power-watch': powerWatch, '0005-tally': tally, '0006-refused-device': refusedDevice };

/** Forgotten when it is closed. */
export const MEMORY_URL = 'sqlite::memory:';

const fileOf = (url: string): string | null => (url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : null);

/**
 * Opens the database, and makes or mends its tables.
 * @param url `sqlite:<path>` or `postgres://…`
 * @throws store_unavailable
 */
export async function openDatabase(url: string): Promise<Db> {
  return opened(url, migrate);
}

/**
 * The same for whoever may not make a store by asking for one.
 * @returns null where no store was ever made: no file, or none of our tables
 * @throws store_unavailable
 */
export async function openMadeDatabase(url: string): Promise<Db | null> {
  const file = fileOf(url);
  if (file !== null && !existsSync(file)) return null;
  let isMade = false;
  const db = await opened(url, async (one) => {
    isMade = (await one.introspection.getTables()).some(({ name }) => name === 'installation');
    if (isMade) await migrate(one);
  });
  if (isMade) return db;
  await db.destroy();
  return null;
}

async function opened(url: string, prepare: (db: Db) => Promise<void>): Promise<Db> {
  const file = fileOf(url);
  const dialect = file !== null ? new SharedFileDialect(file) : new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 10, connectionTimeoutMillis: 5000 }) });
  const db = new Kysely<Schema>({ dialect });
  try {
    await prepare(db);
  } catch (error) {
    await db.destroy().catch(() => undefined);
    throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
  }
  return db;
}

async function migrate(db: Db): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
  // Two roles may start at once on one SQLite file; the second finds the work done.
  for (let attempt = 1; ; attempt++) {
    const { error } = await migrator.migrateToLatest();
    if (!error) return;
    if (attempt === 5) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
  }
}

/**
 * Runs `work` in one transaction that first locks the device's row, so that two writers of one device are one after the
 * other on either database. (`select … for update` is not in SQLite; an update that changes nothing locks in both.)
 */
export async function lockedTransaction<R>(db: Db, deviceId: string, work: (tx: Tx) => Promise<R>): Promise<R> {
  return db.transaction().execute(async (tx) => {
    await lockDevice(tx, deviceId);
    return work(tx);
  });
}

/**
 * A transaction that a power cut may take back, and nothing but that: it is seen by everybody once it is committed, and not waited
 * for until it is on the disk. For what is only a hint, and asked for by a fleet at once.
 */
export async function hintTransaction<R>(db: Db, work: (tx: Tx) => Promise<R>): Promise<R> {
  if (!isSqlite(db)) {
    return db.transaction().execute(async (tx) => {
      await sql`set local synchronous_commit to off`.execute(tx);
      return work(tx);
    });
  }
  // The one connection is nobody else's meanwhile, so no other commit is made so.
  return db.connection().execute(async (own) => {
    const { rows: [usual] } = await sql<{ synchronous: number }>`pragma synchronous`.execute(own);
    await sql`pragma synchronous = normal`.execute(own);
    try {
      return await own.transaction().execute(work);
    } finally {
      await sql`pragma synchronous = ${sql.lit(usual!.synchronous)}`.execute(own);
    }
  });
}

export async function lockDevice(tx: Tx, deviceId: string): Promise<void> {
  await tx.updateTable('device').set((eb) => ({ name: eb.ref('name') })).where('device_id', '=', deviceId).execute();
}
