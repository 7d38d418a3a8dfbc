/** The log lines of nodes: bounded per node, oldest forgotten first. */
import { MetalflowError } from '../domain/errors.js';
import type { KeptLogLine, NodeLogLine, NodeLogReader, NodeLogWriter } from '../contracts/node-logs.js';
import type { Db, Tx } from './database.js';
import { newId } from './ids.js';

/** Kept of one node; about four provisions of a talkative HookOS. */
export const LINES_PER_NODE = 20_000;
/** Lines between two looks at how many a node has: it may hold so many more for a while. */
const LINES_PER_TRIM = 1000;

export interface NodeLogs extends NodeLogWriter, NodeLogReader {}

export function createNodeLogs({ db, now, linesPerNode = LINES_PER_NODE, linesPerTrim = LINES_PER_TRIM }: { db: Db; now: () => Date; linesPerNode?: number; linesPerTrim?: number }): NodeLogs {
  const sinceTrim = new Map<string, number>();

  async function trim(tx: Tx, deviceId: string): Promise<void> {
    const newestGone = await tx.selectFrom('node_log')
      .select('id')
      .where('device_id', '=', deviceId)
      .orderBy('id', 'desc').limit(1)
      .offset(linesPerNode)
      .executeTakeFirst();
    if (newestGone) await tx.deleteFrom('node_log').where('device_id', '=', deviceId).where('id', '<=', newestGone.id).execute();
  }

  async function keepOf(tx: Tx, deviceId: string, lines: readonly NodeLogLine[]): Promise<void> {
    const runs = await tx.selectFrom('run')
      .select(['number', 'opened_at', 'closed_at'])
      .where('device_id', '=', deviceId)
      .orderBy('number', 'desc').limit(2)
      .execute();
    // By when it came, not by what is open now: the last words of a run are written after its end.
    const runAt = (at: string): number | null => runs.find(({ opened_at, closed_at }) => opened_at <= at && (closed_at === null || at <= closed_at))?.number ?? null;
    await tx.insertInto('node_log').values(lines.map(({ at, receivedAt, severity, facility, host, program, text }) => ({
      id: newId(now()), device_id: deviceId, run: runAt(receivedAt), at, received_at: receivedAt, severity, facility, host, program, message: text,
    }))).execute();
    const fresh = (sinceTrim.get(deviceId) ?? linesPerTrim) + lines.length;
    if (fresh >= linesPerTrim) await trim(tx, deviceId);
    sinceTrim.set(deviceId, fresh >= linesPerTrim ? 0 : fresh);
  }

  return {
    async keep(lines) {
      const byDevice = new Map<string, NodeLogLine[]>();
      for (const line of lines) byDevice.set(line.deviceId, [...(byDevice.get(line.deviceId) ?? []), line]);
      try {
        await db.transaction().execute(async (tx) => {
          for (const [deviceId, those] of byDevice) await keepOf(tx, deviceId, those);
        });
      } catch (error) {
        throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
      }
    },

    async read(deviceId, { run, after, since, limit }) {
      let rows = db.selectFrom('node_log').selectAll().where('device_id', '=', deviceId).limit(limit);
      if (run !== undefined) rows = rows.where('run', '=', run);
      if (after !== undefined) rows = rows.where('id', '>', after);
      if (since !== undefined) rows = rows.where('received_at', '>=', new Date(since).toISOString());
      const isFromTheEnd = after === undefined && since === undefined;
      const found = await rows.orderBy('id', isFromTheEnd ? 'desc' : 'asc').execute();
      if (isFromTheEnd) found.reverse();
      const lines = found.map((row): KeptLogLine => ({
        id: row.id, deviceId, run: row.run, at: row.at, receivedAt: row.received_at, severity: row.severity, facility: row.facility, host: row.host, program: row.program, text: row.message,
      }));
      return { lines, after: lines.at(-1)?.id ?? after ?? null };
    },
  };
}
