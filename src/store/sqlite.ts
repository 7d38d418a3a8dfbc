/** SQLite behind kysely: several processes share the file, and none may stand still while another writes. */
import { SqliteDialect, SqliteDriver, type CompiledQuery, type DatabaseConnection, type Driver, type QueryResult } from 'kysely';
import SqliteFile from 'libsql';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** How long another process may hold the file, ms; longer is an error. */
const LOCKED_MS = 10_000;
const TRY_AGAIN_MS = 25;

const isLocked = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(String((error as { code?: unknown }).code));

type File = InstanceType<typeof SqliteFile>;

/**
 * Waits for the file between tries. SQLite's own busy_timeout sleeps inside the call, and this binding's calls are synchronous: a
 * boot plane that met a lock would answer no node at all for that time, not even that it cannot answer.
 * @throws what `work` throws, when it is no lock or the lock stays
 */
async function patiently<R>(work: () => R | Promise<R>): Promise<R> {
  const until = performance.now() + LOCKED_MS;
  for (let wait = 1; ; wait = Math.min(2 * wait, TRY_AGAIN_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isLocked(error) || performance.now() > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

const WRITES = /^\s*(insert|update|delete|replace|create|alter|drop)\b/i;

/**
 * The write lock is always taken by `exec`, before the statement that needs it. A prepared statement that meets a lock stays open in this
 * binding until it is collected, and as long as it does each commit fails ("SQL statements in progress"); `exec` leaves nothing behind.
 */
class SharedFileConnection implements DatabaseConnection {
  #inTransaction = false;
  constructor(
    readonly file: File,
    readonly inner: DatabaseConnection,
  ) {}

  async begin(): Promise<void> {
    await patiently(() => void this.file.exec('begin immediate'));
    this.#inTransaction = true;
  }

  end(how: 'commit' | 'rollback'): void {
    this.#inTransaction = false;
    this.file.exec(how);
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#inTransaction || !WRITES.test(query.sql)) return patiently(() => this.inner.executeQuery<R>(query));
    await this.begin();
    try {
      const result = await this.inner.executeQuery<R>(query);
      this.end('commit');
      return result;
    } catch (error) {
      // A full disk has taken it back already.
      if (this.file.inTransaction) this.end('rollback');
      this.#inTransaction = false;
      throw error;
    }
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }
}

class SharedFileDriver extends SqliteDriver {
  readonly #file: () => File;
  #own: SharedFileConnection | null = null;
  constructor(open: () => Promise<File>) {
    let file: File | null = null;
    super({ database: async () => (file = await open()) as never });
    this.#file = () => file!;
  }
  override async acquireConnection(): Promise<DatabaseConnection> {
    const inner = await super.acquireConnection();
    return (this.#own ??= new SharedFileConnection(this.#file(), inner));
  }
  /** Takes the write lock at the start of a transaction, not in its middle, where it would fail. */
  override async beginTransaction(): Promise<void> {
    await this.#own!.begin();
  }
  override async commitTransaction(): Promise<void> {
    this.#own!.end('commit');
  }
  override async rollbackTransaction(): Promise<void> {
    this.#own!.end('rollback');
  }
}

export class SharedFileDialect extends SqliteDialect {
  readonly #open: () => Promise<File>;
  constructor(file: string) {
    const open = (): Promise<File> => openFile(file);
    super({ database: open as never });
    this.#open = open;
  }
  override createDriver(): Driver {
    return new SharedFileDriver(this.#open);
  }
}

async function openFile(file: string): Promise<File> {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const database = new SqliteFile(file);
  try {
    database.pragma('busy_timeout = 0');
    await patiently(() => void database.exec('pragma journal_mode = WAL'));
    // Committed means on the disk: a report is answered OK only then.
    database.pragma('synchronous = FULL');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
