/** The ledger, seen from the agent: what is next, taking it, its progress and its report. */
import type { Selectable } from 'kysely';
import { MetalflowError } from '../domain/errors.js';
import { SIGNALS, runWorkflowId } from '../contracts/messages.js';
import type { AgentSession, OrderDesk } from '../contracts/agent-desk.js';
import type { AgentAction, Order, OrderReport } from '../contracts/order.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import type { Bell } from './bell.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { distrust } from './installation.js';
import { hashSecret } from './ids.js';
import { appendJournal } from './journal.js';
import { completeActivity } from './orders.js';
import { post } from './outbox.js';
import type { AgentOrderTable } from './schema.js';

type Row = Selectable<AgentOrderTable>;

/** How often a waiting poll looks for itself, for orders that another process queued. */
const LOOK_EVERY_MS = 250;

const toOrder = (row: Row): Order => ({
  orderId: row.id, run: row.run, title: row.title, action: JSON.parse(row.action) as AgentAction, timeoutSeconds: row.timeout_seconds, destructive: row.destructive === 1, grant: row.grant_no,
});

export function createOrderDesk({ db, now, bell, woken, crash = noCrash }: { db: Db; now: () => Date; bell: Bell; woken: () => void; crash?: CrashPoint }): OrderDesk {
  /** The order, when it was given to this boot of this device. */
  async function own(tx: Tx, session: AgentSession, orderId: string): Promise<Row> {
    const row = await tx.selectFrom('agent_order').selectAll().where('id', '=', orderId).where('device_id', '=', session.deviceId).executeTakeFirst();
    if (!row) throw new MetalflowError('order_not_found', { order: orderId });
    return row;
  }

  const next: OrderDesk['next'] = async (session) => {
    if (!session.bootAttempt) return null;
    const row = await db.selectFrom('agent_order')
      .selectAll()
      .where('device_id', '=', session.deviceId).where('boot_attempt', '=', session.bootAttempt).where('state', '=', 'queued')
      .where('withheld', '=', 0)
      .orderBy('id')
      .executeTakeFirst();
    return row ? toOrder(row) : null;
  };

  /** The node of an intake waits with a token that its run revokes: it has to hear of that at once, to attest again. */
  async function isRevoked(session: AgentSession): Promise<boolean> {
    const row = await db.selectFrom('session').select('revoked_at').where('token_hash', '=', session.id).executeTakeFirst();
    return row?.revoked_at !== null;
  }

  return {
    async session(token) {
      const id = hashSecret(token);
      const row = await db
        .selectFrom('session')
        .innerJoin('device', 'device.device_id', 'session.device_id')
        .select(['session.device_id', 'session.run', 'session.boot_attempt', 'session.ak_thumbprint', 'session.expires_at', 'session.revoked_at', 'session.last_seen_at', 'device.name'])
        .where('session.token_hash', '=', id)
        .executeTakeFirst();
      const at = now().toISOString();
      if (!row || row.revoked_at !== null || row.expires_at < at) return null;
      const { run, boot_attempt: bootAttempt } = row;
      const isFirst = row.last_seen_at === null && run !== null && bootAttempt !== null;
      // The first sight and the telling of it are one: a process that died in between would never tell.
      await db.transaction().execute(async (tx) => {
        await tx.updateTable('session').set({ last_seen_at: at }).where('token_hash', '=', id).execute();
        if (!isFirst) return;
        await post(tx, now(), { kind: 'signal-run', workflowId: runWorkflowId(row.device_id, run), name: SIGNALS.agentSeen.name, payload: { bootAttempt } });
        crash('agent-seen-before-commit');
      });
      if (isFirst) woken();
      return { id, deviceId: row.device_id, nodeName: row.name, run: row.run, bootAttempt: row.boot_attempt, akThumbprint: row.ak_thumbprint };
    },

    next,

    async held(session, orderId) {
      const row = await db.selectFrom('agent_order')
        .selectAll()
        .where('id', '=', orderId).where('device_id', '=', session.deviceId).where('state', '=', 'consumed').where('consumed_by', '=', session.id)
        .executeTakeFirst();
      return row ? toOrder(row) : null;
    },

    async waitForChange(session, ms, signal) {
      const until = Date.now() + ms;
      while (!signal.aborted) {
        const left = until - Date.now();
        if (left <= 0 || (await next(session)) || (await isRevoked(session))) return;
        await bell.wait(session.deviceId, Math.min(left, LOOK_EVERY_MS), signal);
      }
    },

    async consume(session, orderId) {
      const answer = await lockedTransaction(db, session.deviceId, async (tx) => {
        const row = await own(tx, session, orderId);
        if (row.state === 'consumed' && row.consumed_by === session.id) return { orderId, consumedAt: row.consumed_at!, deadlineAt: row.deadline_at! };
        if (row.state !== 'queued' || row.boot_attempt !== session.bootAttempt) throw new MetalflowError('order_closed', { state: row.state });
        const why = await distrust(tx, session.deviceId);
        if (why) throw new MetalflowError('installation_mismatch', { why });
        const at = now();
        const consumedAt = at.toISOString();
        const deadlineAt = new Date(at.getTime() + row.timeout_seconds * 1000).toISOString();
        await tx.updateTable('agent_order')
          .set({ state: 'consumed', consumed_at: consumedAt, consumed_by: session.id, deadline_at: deadlineAt, last_sign_at: consumedAt })
          .where('id', '=', orderId)
          .execute();
        if (row.destructive) await tx.updateTable('run').set({ destroyed: 1 }).where('device_id', '=', row.device_id).where('number', '=', row.run).execute();
        await appendJournal(tx, at, { deviceId: row.device_id, run: row.run, kind: 'order', text: `${row.title}: taken by the agent` });
        crash('order-consume-before-commit');
        return { orderId, consumedAt, deadlineAt };
      });
      crash('order-consume-before-answer');
      return answer;
    },

    async progress(session, orderId, progress) {
      return lockedTransaction(db, session.deviceId, async (tx) => {
        const row = await own(tx, session, orderId);
        // Unknown is not over: an agent that was not heard of for a while is at work still, and stopping it would make the worst of that.
        if (row.state !== 'consumed' && row.state !== 'unknown') return 'stop';
        await tx.updateTable('agent_order').set({ progress: JSON.stringify(progress), last_sign_at: now().toISOString() }).where('id', '=', orderId).execute();
        crash('order-progress-before-commit');
        return 'on';
      });
    },

    async report(session, orderId, report) {
      const taken = await lockedTransaction(db, session.deviceId, async (tx) => {
        const row = await own(tx, session, orderId);
        if (row.report) return 'repeated' as const;
        if (row.state !== 'consumed' && row.state !== 'unknown') {
          await appendJournal(tx, now(), { deviceId: row.device_id, run: row.run, kind: 'order', text: `${row.title}: a late report (${report.result}) changes nothing: ${report.message}` });
          return 'late' as const;
        }
        const at = now();
        await tx.updateTable('agent_order')
          .set({ state: 'reported', report: JSON.stringify(report), reported_at: at.toISOString(), last_sign_at: at.toISOString() })
          .where('id', '=', orderId)
          .execute();
        await appendJournal(tx, at, { deviceId: row.device_id, run: row.run, kind: 'order', text: `${row.title}: ${report.result}${report.message ? `: ${report.message}` : ''}` });
        if (row.state === 'unknown') await post(tx, at, { kind: 'signal-run', workflowId: runWorkflowId(row.device_id, row.run), name: SIGNALS.orderReported.name, payload: { orderId } });
        else await completeActivity(tx, at, row, { kind: 'reported', report: report as OrderReport });
        crash('order-report-before-commit');
        return 'taken' as const;
      });
      crash('order-report-before-answer');
      woken();
      return taken;
    },
  };
}
