/** SQLite behind kysely: several processes share the file, and none may stand still while another writes. */
import { CompiledQuery, SqliteDialect, SqliteDriver, type DatabaseConnection, type Driver, type QueryResult } from 'kysely';
import SqliteFile from 'libsql';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** How long another process may hold the file, ms; longer is an error. */
const LOCKED_MS = 10_000;
const TRY_AGAIN_MS = 25;

const isLocked = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(String((error as { code?: unknown }).code));

/**
 * Waits for the file between tries. SQLite's own busy_timeout sleeps inside the call, and this binding's calls are synchronous: a
 * boot plane that met a lock would answer no node at all for that time, not even that it cannot answer.
 */
function patient(connection: DatabaseConnection): DatabaseConnection {
  return {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      const until = performance.now() + LOCKED_MS;
      for (let wait = 1; ; wait = Math.min(2 * wait, TRY_AGAIN_MS)) {
        try {
          return await connection.executeQuery<R>(query);
        } catch (error) {
          if (!isLocked(error) || performance.now() > until) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    },
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  };
}

class SharedFileDriver extends SqliteDriver {
  override async acquireConnection(): Promise<DatabaseConnection> {
    return patient(await super.acquireConnection());
  }
  /** Takes the write lock at the start of a transaction, not in its middle, where it would fail. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }
}

export class SharedFileDialect extends SqliteDialect {
  readonly #open: () => unknown;
  constructor(file: string) {
    const open = (): unknown => openFile(file);
    super({ database: async () => open() as never });
    this.#open = open;
  }
  override createDriver(): Driver {
    return new SharedFileDriver({ database: async () => this.#open() as never });
  }
}

function openFile(file: string): unknown {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const database = new SqliteFile(file);
  // Nobody is served yet: here it may wait.
  database.pragma(`busy_timeout = ${LOCKED_MS}`);
  database.pragma('journal_mode = WAL');
  // Committed means on the disk: a report is answered OK only then.
  database.pragma('synchronous = FULL');
  database.pragma('busy_timeout = 0');
  return database;
}
