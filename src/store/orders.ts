/**
 * The ledger. An order is a row (device, run, title, grant): queued → consumed → reported | unknown | cancelled. A consumed order
 * is never queued again; only a new attested boot attempt, or a person's `retry` on an unknown order, raises the grant.
 */
import type { Selectable } from 'kysely';
import { MetalflowError } from '../domain/errors.js';
import { OPEN_ORDER_STATES } from '../domain/actions.js';
import type { OrderProgress, OrderReport } from '../contracts/order.js';
import type { OrderLedger, OrderResult } from '../contracts/store.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { assertAttempt, assertFence, assertHeld } from './fence.js';
import { newId } from './ids.js';
import { appendJournal } from './journal.js';
import { post as postToOutbox } from './outbox.js';
import type { AgentOrderTable } from './schema.js';

type Row = Selectable<AgentOrderTable>;

/** What came of an order; null while it is open. */
export function resultOf(row: Row): OrderResult | null {
  if (row.report) return { kind: 'reported', report: JSON.parse(row.report) as OrderReport };
  if (row.state === 'unknown') return { kind: 'unknown', since: row.last_sign_at ?? row.consumed_at ?? row.queued_at };
  if (row.state !== 'cancelled') return null;
  if (row.closed_why === NOT_TAKEN) return { kind: 'not-taken', seconds: seconds(row.queued_at, row.queue_deadline) };
  if (row.closed_why === TIMED_OUT) return { kind: 'timed-out', seconds: row.timeout_seconds };
  return { kind: 'cancelled', why: row.closed_why ?? 'cancelled' };
}

const NOT_TAKEN = 'nobody took it';
const TIMED_OUT = 'its time ran out';
const seconds = (from: string, to: string): number => Math.round((Date.parse(to) - Date.parse(from)) / 1000);

/** The activity that mirrors the order, if one waits, is completed through the outbox. */
export async function completeActivity(tx: Tx, at: Date, row: Row, result: OrderResult): Promise<void> {
  if (row.task_token) await postToOutbox(tx, at, { kind: 'complete', taskToken: row.task_token, payload: result });
}

/** Ends an open order for a reason and wakes its activity. @returns false when it has moved, or its agent has spoken, since `row` was read */
async function endOrder(tx: Tx, at: Date, row: Row, state: 'unknown' | 'cancelled', why: string): Promise<boolean> {
  let open = tx.updateTable('agent_order').set({ state, closed_why: why }).where('id', '=', row.id).where('state', '=', row.state);
  if (row.last_sign_at !== null) open = open.where('last_sign_at', '=', row.last_sign_at);
  const ended = await open.returningAll().executeTakeFirst();
  if (!ended) return false;
  await completeActivity(tx, at, ended, resultOf(ended)!);
  await appendJournal(tx, at, { deviceId: row.device_id, run: row.run, kind: 'order', text: `${row.title}: ${state === 'unknown' ? 'outcome unknown' : why}` });
  return true;
}

/** A new boot attempt: what the former boot was offered nobody takes any more, and of what it took nobody reports. */
export async function endOrdersOfFormerBoot(tx: Tx, at: Date, deviceId: string): Promise<void> {
  const open = await tx.selectFrom('agent_order').selectAll().where('device_id', '=', deviceId).where('state', 'in', [...OPEN_ORDER_STATES]).execute();
  for (const row of open) await endOrder(tx, at, row, row.state === 'queued' ? 'cancelled' : 'unknown', 'the node was booted anew');
}

export function createOrderLedger({ db, now, changed, crash = noCrash }: { db: Db; now: () => Date; changed: (deviceId: string) => void; crash?: CrashPoint }): OrderLedger {
  const find = (from: Db | Tx, orderId: string): Promise<Row | undefined> => from.selectFrom('agent_order').selectAll().where('id', '=', orderId).executeTakeFirst();

  const end = (row: Row, state: 'unknown' | 'cancelled', why: string): Promise<boolean> => lockedTransaction(db, row.device_id, (tx) => endOrder(tx, now(), row, state, why));

  return {
    async post(ref, input) {
      const posted = await lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertAttempt(tx, ref, input.bootAttempt);
        const attempt = await tx.selectFrom('boot_attempt').select('attested_at').where('id', '=', input.bootAttempt).executeTakeFirstOrThrow();
        if (attempt.attested_at === null) throw new MetalflowError('attempt_unattested', { attempt: input.bootAttempt });
        const last = await tx.selectFrom('agent_order')
          .selectAll()
          .where('device_id', '=', ref.deviceId).where('run', '=', ref.run).where('title', '=', input.title)
          .orderBy('grant_no', 'desc')
          .executeTakeFirst();
        const lastFence = last && (await tx.selectFrom('boot_attempt').select('fence').where('id', '=', last.boot_attempt).executeTakeFirstOrThrow()).fence;
        const verdict = grantAfter(last, { sameBoot: last?.boot_attempt === input.bootAttempt, sameFence: lastFence === ref.temporalRunId, retried: input.grantUnknown !== null });
        if (verdict.kind === 'same') return { orderId: last!.id, grant: last!.grant_no };
        const at = now();
        const id = newId(at);
        await tx
          .insertInto('agent_order')
          .values({
            id, device_id: ref.deviceId, run: ref.run, boot_attempt: input.bootAttempt, title: input.title, grant_no: verdict.grant, state: 'queued',
            action: JSON.stringify(input.action), action_name: input.action.name, destructive: input.destructive ? 1 : 0, timeout_seconds: input.timeoutSeconds,
            queued_at: at.toISOString(), queue_deadline: new Date(at.getTime() + input.queueSeconds * 1000).toISOString(), consumed_at: null, consumed_by: null, deadline_at: null,
            last_sign_at: null, progress: null, report: null, reported_at: null, closed_why: null, task_token: null, withheld: 0, heartbeat_at: null,
          })
          .execute();
        const by = input.grantUnknown;
        const again = `granted again (grant ${verdict.grant}) ${by ? 'on retry' : 'for a new attested boot'}`;
        await appendJournal(tx, at, { deviceId: ref.deviceId, run: ref.run, kind: 'order', text: `${input.title}: ${verdict.grant === 1 ? 'ordered' : again}`, ...(by && { by }) });
        return { orderId: id, grant: verdict.grant };
      });
      crash('order-posted');
      changed(ref.deviceId);
      return posted;
    },

    attach: (ref, orderId, taskToken) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        const row = await find(tx, orderId);
        if (!row) throw new MetalflowError('order_not_found', { order: orderId });
        await assertFence(tx, ref, row.boot_attempt);
        const result = resultOf(row);
        if (result) return result;
        await assertAttempt(tx, ref, row.boot_attempt);
        await tx.updateTable('agent_order').set({ task_token: taskToken, heartbeat_at: now().toISOString() }).where('id', '=', orderId).execute();
        return null;
      }),

    async result(deviceId, orderId) {
      const row = await find(db, orderId);
      return row && row.device_id === deviceId ? resultOf(row) : null;
    },

    resolveAsDone: (ref, orderId, by) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        const report: OrderReport = { result: 'succeeded', message: `${by} said that it was done` };
        const row = await tx.updateTable('agent_order')
          .set({ state: 'reported', report: JSON.stringify(report), reported_at: now().toISOString() })
          .where('id', '=', orderId).where('device_id', '=', ref.deviceId).where('state', '=', 'unknown')
          .returning('title')
          .executeTakeFirst();
        // Its own report came first: that stands.
        if (row) await appendJournal(tx, now(), { deviceId: ref.deviceId, run: ref.run, kind: 'verb', text: `${row.title}: resolved as done`, by });
      }),

    async cancelOpen(ref, why) {
      await lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        await tx.updateTable('agent_order')
          .set({ state: 'cancelled', closed_why: why })
          .where('device_id', '=', ref.deviceId).where('run', '=', ref.run).where('state', 'in', [...OPEN_ORDER_STATES])
          .execute();
      });
      changed(ref.deviceId);
    },

    async passDeadlines(agentSilenceSeconds) {
      const at = now();
      const instant = at.toISOString();
      const silentSince = new Date(at.getTime() - agentSilenceSeconds * 1000).toISOString();
      let passed = 0;
      const open = db.selectFrom('agent_order').selectAll();
      for (const row of await open.where('state', '=', 'queued').where('withheld', '=', 0).where('queue_deadline', '<', instant).execute()) passed += Number(await end(row, 'cancelled', NOT_TAKEN));
      // Silence comes first: an agent that was not heard of may have done it, so its time running out says nothing.
      for (const row of await open.where('state', '=', 'consumed').where('last_sign_at', '<', silentSince).execute()) passed += Number(await end(row, 'unknown', 'the agent fell silent'));
      for (const row of await open.where('state', '=', 'consumed').where('deadline_at', '<', instant).execute()) passed += Number(await end(row, 'cancelled', TIMED_OUT));
      return passed;
    },

    async wantHeartbeat(before) {
      const rows = await db.selectFrom('agent_order')
        .selectAll()
        .where('state', 'in', [...OPEN_ORDER_STATES]).where('task_token', 'is not', null).where('heartbeat_at', '<', before.toISOString())
        .execute();
      if (rows.length) await db.updateTable('agent_order').set({ heartbeat_at: now().toISOString() }).where('id', 'in', rows.map((row) => row.id)).execute();
      return rows.map((row) => ({ orderId: row.id, taskToken: row.task_token!, withheld: row.withheld === 1, details: heartbeatDetails(row) }));
    },

    async withhold(orderId, withheld) {
      const row = await find(db, orderId);
      if (!row || (row.withheld === 1) === withheld) return;
      await lockedTransaction(db, row.device_id, async (tx) => {
        // Let go, it gets its whole time to be taken once more.
        const again = new Date(now().getTime() + seconds(row.queued_at, row.queue_deadline) * 1000).toISOString();
        await tx.updateTable('agent_order')
          .set({ withheld: withheld ? 1 : 0, ...(!withheld && { queue_deadline: again }) })
          .where('id', '=', orderId)
          .execute();
        const paused = `paused in Temporal${row.state === 'consumed' ? '; the agent has taken it and goes on' : ''}`;
        await appendJournal(tx, now(), { deviceId: row.device_id, run: row.run, kind: 'order', text: `${row.title}: ${withheld ? paused : 'no longer paused'}` });
      });
      changed(row.device_id);
    },

    async cancelByTemporal(orderId) {
      const row = await find(db, orderId);
      if (!row) return;
      await lockedTransaction(db, row.device_id, async (tx) => {
        await tx.updateTable('agent_order')
          .set({ state: 'cancelled', closed_why: 'cancelled in Temporal', task_token: null })
          .where('id', '=', orderId).where('state', 'in', [...OPEN_ORDER_STATES])
          .execute();
      });
      changed(row.device_id);
    },
  };
}

type GrantVerdict = { readonly kind: 'same' } | { readonly kind: 'new'; readonly grant: number };

/** May this action be granted (again)? The heart of "once". */
export function grantAfter(last: Pick<Row, 'state' | 'grant_no' | 'title' | 'consumed_at'> | undefined, now: { sameBoot: boolean; sameFence: boolean; retried: boolean }): GrantVerdict {
  if (!last) return { kind: 'new', grant: 1 };
  const again: GrantVerdict = { kind: 'new', grant: last.grant_no + 1 };
  if (last.state === 'unknown' && now.retried) return again;
  // The same boot: the order stands, whatever its state.
  if (now.sameBoot) return { kind: 'same' };
  // The run was reset, and the node has booted and attested anew since: all its actions are granted once more.
  if (!now.sameFence && last.state !== 'queued' && last.state !== 'consumed') return again;
  if (last.consumed_at === null && last.state === 'cancelled') return again;
  // Another boot of the same run: what was reported is done and is not done twice; what was taken and never reported waits for a person.
  if (last.state === 'reported' || last.state === 'unknown' || last.state === 'cancelled') return { kind: 'same' };
  throw new MetalflowError('order_closed', { state: last.state });
}

function heartbeatDetails(row: Row): unknown {
  const progress = row.progress ? (JSON.parse(row.progress) as OrderProgress) : null;
  if (!progress) return { order: row.id, state: row.state };
  const { done, total, unit } = progress;
  return { order: row.id, state: row.state, progress: total > 0 ? `${Math.floor((100 * done) / total)} %` : `${done} ${unit}`, ...progress };
}
