/** What a lock of another process leaves behind in ours: nothing. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import SqliteFile from 'libsql';
import { openDatabase } from '../../src/store/index.js';

test('a write that met a lock waits for it, and what is committed after it is committed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-locked-'));
  const db = await openDatabase(`sqlite:${join(dir, 'store.db')}`);
  const other = new SqliteFile(join(dir, 'store.db'));
  const remember = (address: string) => db.insertInto('sender').values({ address, mac: '02:01:48:aa:bb:0c', at: '2026-11-20T10:00:00Z' }).execute();
  try {
    other.exec('begin immediate');
    const waiting = [remember('10.0.0.1'), db.transaction().execute((tx) => tx.insertInto('sender').values({ address: '10.0.0.2', mac: '02:01:48:aa:bb:0c', at: '2026-11-20T10:00:00Z' }).execute())];
    // The process does not stand still meanwhile: its timers run.
    await new Promise((resolve) => setTimeout(resolve, 60));
    other.exec('commit');
    await Promise.all(waiting);
    await remember('10.0.0.3');
    expect((other.prepare('select address from sender order by address').all() as { address: string }[]).map(({ address }) => address)).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  } finally {
    other.close();
    await db.destroy();
    rmSync(dir, { recursive: true, force: true });
  }
});
