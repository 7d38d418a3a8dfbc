/**
 * What the planes have to say to Temporal: rows, written in the transaction of the fact they tell, delivered by the worker
 * role's retrying loop. So no plane needs Temporal to answer a node.
 */
import type { Db, Tx } from './database.js';
import { newId } from './ids.js';

export type OutboxMessage =
  | { readonly kind: 'signal-run'; readonly workflowId: string; readonly name: string; readonly payload: unknown }
  | { readonly kind: 'signal-lifecycle'; readonly deviceId: string; readonly name: string; readonly payload: unknown }
  | { readonly kind: 'complete'; readonly taskToken: string; readonly payload: unknown };

export interface OutboxRow {
  readonly id: string;
  readonly tries: number;
  readonly message: OutboxMessage;
}

const targetOf = (message: OutboxMessage): string => (message.kind === 'signal-run' ? message.workflowId : message.kind === 'signal-lifecycle' ? message.deviceId : message.taskToken);

function toMessage(row: { kind: string; target: string; name: string; payload: string }): OutboxMessage {
  const payload: unknown = JSON.parse(row.payload);
  if (row.kind === 'signal-run') return { kind: 'signal-run', workflowId: row.target, name: row.name, payload };
  if (row.kind === 'signal-lifecycle') return { kind: 'signal-lifecycle', deviceId: row.target, name: row.name, payload };
  return { kind: 'complete', taskToken: row.target, payload };
}

export async function post(db: Db | Tx, at: Date, message: OutboxMessage): Promise<void> {
  const instant = at.toISOString();
  await db
    .insertInto('outbox')
    .values({
      id: newId(at), kind: message.kind, target: targetOf(message), name: message.kind === 'complete' ? 'complete' : message.name,
      payload: JSON.stringify(message.payload), created_at: instant, next_try_at: instant, tries: 0, delivered_at: null, result: null,
    })
    .execute();
}

export interface Outbox {
  /** Due rows, oldest first. */
  due(limit: number): Promise<OutboxRow[]>;
  delivered(id: string, result: string): Promise<void>;
  /** Tries again after a growing delay, at most 30 s. */
  failed(id: string, tries: number): Promise<void>;
  pending(): Promise<number>;
  oldestPendingAt(): Promise<string | null>;
}

export function createOutbox({ db, now }: { db: Db; now: () => Date }): Outbox {
  return {
    async due(limit) {
      const rows = await db.selectFrom('outbox')
        .selectAll()
        .where('delivered_at', 'is', null).where('next_try_at', '<=', now().toISOString())
        .orderBy('id').limit(limit)
        .execute();
      return rows.map((row) => ({ id: row.id, tries: row.tries, message: toMessage(row) }));
    },
    async delivered(id, result) {
      await db.updateTable('outbox').set({ delivered_at: now().toISOString(), result }).where('id', '=', id).execute();
    },
    async failed(id, tries) {
      const delay = Math.min(30_000, 250 * 2 ** Math.min(tries, 7));
      await db.updateTable('outbox').set({ tries: tries + 1, next_try_at: new Date(now().getTime() + delay).toISOString() }).where('id', '=', id).execute();
    },
    async oldestPendingAt() {
      const row = await db.selectFrom('outbox').select('created_at').where('delivered_at', 'is', null).orderBy('id').limit(1).executeTakeFirst();
      return row?.created_at ?? null;
    },
    async pending() {
      const { count } = await db.selectFrom('outbox')
        .select((eb) => eb.fn.countAll<number>().as('count'))
        .where('delivered_at', 'is', null)
        .executeTakeFirstOrThrow();
      return Number(count);
    },
  };
}
