/** The agent's journal as a file of JSON lines. It must outlive the agent process, not the boot: on a node it lies in RAM. */
import { appendFileSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { AgentMachine, JournalEntry } from '../contracts/agent-machine.js';

/** The entries of a journal file, oldest first; a line that a kill cut short is left out. None when there is no file. */
export function readJournal(path: string): JournalEntry[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8').split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as JournalEntry];
    } catch {
      return [];
    }
  });
}

/** The journal's half of an AgentMachine. */
export function fileJournal(path: string): Pick<AgentMachine, 'journal' | 'wasStarted'> {
  mkdirSync(dirname(path), { recursive: true });
  // An entry behind a line that a kill cut short would be lost with it.
  if (existsSync(path) && !readFileSync(path, 'utf8').endsWith('\n')) appendFileSync(path, '\n');
  return {
    journal(entry) {
      const fd = openSync(path, 'a', 0o600);
      try {
        writeSync(fd, `${JSON.stringify(entry)}\n`);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    },
    wasStarted: (orderId) => readJournal(path).some((entry) => entry.orderId === orderId && entry.what === 'started'),
  };
}
