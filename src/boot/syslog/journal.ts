/**
 * Lines of nodes into the system journal, by `logger --journald` (util-linux): one process an entry, since it takes one a
 * call, and Node speaks no datagrams over unix sockets. Few at a time, and what piles up is dropped: the store has the line.
 */
import { spawn } from 'node:child_process';
import type { Logger } from '../../telemetry/log.js';
import type { SyslogLine } from './parse.js';

export interface JournalForwarder {
  /** Never throws, never waits. */
  take(line: SyslogLine): void;
  stats(): { readonly sent: number; readonly failed: number; readonly dropped: number };
  close(): Promise<void>;
}

export interface JournalForwarderDeps {
  /** `logger`, or its path. */
  readonly program: string;
  readonly log: Logger;
  readonly atOnce?: number;
  readonly waiting?: number;
  readonly limitMs?: number;
  readonly start?: typeof spawn;
}

/** journald's text form: one `FIELD=value` a line, so a value holds no line break. */
const oneLine = (text: string): string => text.replaceAll(/[\r\n]+/g, ' ');

export const journalEntry = (line: SyslogLine): string =>
  [
    `MESSAGE=${oneLine(line.text)}`, `PRIORITY=${line.severity}`, `SYSLOG_FACILITY=${line.facility}`, `SYSLOG_IDENTIFIER=${oneLine(line.app ?? 'node')}`,
    `HOOKOS_HOST=${oneLine(line.host)}`, ...(line.app === null ? [] : [`HOOKOS_PROGRAM=${oneLine(line.app)}`]), `HOOKOS_ADDRESS=${line.sender}`,
  ].map((field) => `${field}\n`).join('');

export function createJournalForwarder({ program, log, atOnce = 4, waiting: mostWaiting = 1000, limitMs = 5000, start = spawn }: JournalForwarderDeps): JournalForwarder {
  const waiting: SyslogLine[] = [];
  const running = new Set<Promise<void>>();
  const stats = { sent: 0, failed: 0, dropped: 0 };
  let hasFailed = false;

  function failed(why: string): void {
    stats.failed++;
    if (!hasFailed) log.warn({ program, why }, 'lines of nodes do not reach the system journal');
    hasFailed = true;
  }

  const send = (line: SyslogLine): Promise<void> =>
    new Promise((resolve) => {
      let isOver = false;
      const over = (why: string | null): void => {
        if (isOver) return;
        isOver = true;
        if (why === null) stats.sent++;
        else failed(why);
        resolve();
      };
      try {
        const child = start(program, ['--journald'], { stdio: ['pipe', 'ignore', 'ignore'], timeout: limitMs, killSignal: 'SIGKILL' });
        child.once('error', (error) => over(error.message));
        child.once('close', (code, signal) => over(code === 0 ? null : `ended with ${code ?? signal}`));
        // It may end before it has read all: its exit says so. Out of file descriptors, Node gives a child without stdin, and the error later.
        child.stdin?.on('error', () => undefined);
        child.stdin?.end(journalEntry(line));
      } catch (error) {
        over((error as Error).message);
      }
    });

  function next(): void {
    while (running.size < atOnce && waiting.length > 0) {
      const sending = send(waiting.shift()!).finally(() => {
        running.delete(sending);
        next();
      });
      running.add(sending);
    }
  }

  return {
    take(line) {
      if (waiting.length >= mostWaiting) return void stats.dropped++;
      waiting.push(line);
      next();
    },
    stats: () => ({ ...stats }),
    async close() {
      stats.dropped += waiting.splice(0).length;
      await Promise.all(running);
    },
  };
}
