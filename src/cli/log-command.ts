/** `metalflow node logs`: what a node said over syslog, page by page, or as it comes. */
import type { Command } from 'commander';
import type { Answer, LogsQuery, OperatorClient } from './operator-client.js';
import { printable, type Terminal } from './output.js';

type Fields = Readonly<Record<string, unknown>>;

export interface LogsOptions {
  readonly run?: string;
  readonly since?: string;
  readonly lines?: string;
  readonly follow?: boolean;
}

/** Seconds a followed log may be silent before it is asked for again. */
const WAIT_SECONDS = 25;

export const logOptions = (command: Command): Command =>
  command
    .option('--run <n>', 'only of this run')
    .option('--since <instant>', 'only what came since, e.g. 2026-11-30T12:00:00Z')
    .option('--lines <n>', 'so many at most: the newest, or the first since an instant')
    .option('--follow', 'go on with what comes, until it is interrupted');

const SEVERITIES = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'info', 'debug'];

/** One line of it; control characters of a node must not steer a terminal. */
export function logLine(line: Fields): string {
  const [at, host, program, text] = [line['receivedAt'] ?? '', line['host'] ?? '-', line['program'] ?? '-', line['text'] ?? ''].map((word) => printable(String(word)));
  return `${at} ${host} ${program} ${SEVERITIES[Number(line['severity'])] ?? '?'}: ${text}\n`;
}

/**
 * Asks until there is nothing more to ask for. With `--json` each line is one object, so that a followed log can be read as it comes.
 * @returns what refused it, or null
 */
export async function printLogs(client: OperatorClient, node: string, options: LogsOptions, json: boolean, terminal: Terminal): Promise<Extract<Answer, { kind: 'refused' }> | null> {
  const { run, since, lines, follow = false } = options;
  let query: LogsQuery = { run, since, limit: lines };
  for (;;) {
    const answered = await client.logs(node, query);
    if (answered.kind === 'refused') return answered;
    const page = answered.value as { lines?: Fields[]; after?: string | null };
    for (const line of page.lines ?? []) terminal.out(json ? `${JSON.stringify(line)}\n` : logLine(line));
    if (!follow) return null;
    // Nothing yet: what comes from now on is asked for without a cursor.
    query = page.after ? { run, after: page.after, wait: String(WAIT_SECONDS) } : { run, since, wait: String(WAIT_SECONDS) };
  }
}
