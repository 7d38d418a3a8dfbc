/**
 * The node's own account of its life: JSON lines, each on the disk before the call returns, so that what a test counts
 * in it survives the kill of the process that wrote it.
 */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** One line. `at` is an ISO instant; which other fields there are depends on `event`. */
export interface JournalEntry {
  readonly at: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface Journal {
  /** Appends and flushes. After `close` it does nothing: a dying node has no last word. */
  write(event: string, fields?: Readonly<Record<string, unknown>>): void;
  read(): JournalEntry[];
  close(): void;
}

/** A line that was cut off by a kill is no entry. */
function parseLine(line: string): JournalEntry[] {
  try {
    return [JSON.parse(line) as JournalEntry];
  } catch {
    return [];
  }
}

/** Opens, or begins, the journal at `path`. Throws what the file system throws. */
export function openJournal({ path, now }: { path: string; now: () => Date }): Journal {
  const file = openSync(path, 'a+', 0o600);
  let open = true;
  // A line cut off by a kill is ended first, or the next entry would be lost with it.
  const before = readFileSync(path);
  if (before.length > 0 && before.at(-1) !== 0x0a) writeSync(file, '\n');
  return {
    write(event, fields = {}) {
      if (!open) return;
      writeSync(file, `${JSON.stringify({ at: now().toISOString(), event, ...fields })}\n`);
      fsyncSync(file);
    },
    read: () => readFileSync(path, 'utf8').split('\n').flatMap(parseLine),
    close() {
      if (open) closeSync(file);
      open = false;
    },
  };
}
