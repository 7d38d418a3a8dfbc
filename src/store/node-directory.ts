/** The store, seen from the operator plane: nodes, runs, journal, evidence. */
import type { Selectable } from 'kysely';
import { MetalflowError, type Failure } from '../domain/errors.js';
import type { RunKind, RunPhase } from '../domain/runs.js';
import { ENDED_STATES, isOneOf, type LifecycleState } from '../domain/states.js';
import type { RunOutcome } from '../contracts/messages.js';
import type { HookLedger, NodeDirectory, NodeRow, RunRow } from '../contracts/operator.js';
import { logsPath } from '../contracts/node-logs.js';
import type { OrderProgress, OrderReport } from '../contracts/order.js';
import { driftOf } from './power-watch.js';
import type { Db } from './database.js';
import { newId } from './ids.js';
import { readJournal } from './journal.js';
import { listRefused } from './refused-devices.js';
import { MOST_STRANGERS } from './refused-reports.js';
import type { DeviceTable, RunTable } from './schema.js';

const parse = <T>(json: string | null): T | null => (json === null ? null : (JSON.parse(json) as T));

export function createNodeDirectory({ db, now }: { db: Db; now: () => Date }): NodeDirectory {
  const withRun = () => db.selectFrom('device').leftJoin('run', (join) => join.onRef('run.device_id', '=', 'device.device_id').onRef('run.number', '=', 'device.open_run')).selectAll('device').select(['run.phase as run_phase', 'run.hold as run_hold']);

  const toNode = (row: Selectable<DeviceTable> & { run_phase: string | null; run_hold: string | null }): NodeRow => ({
    deviceId: row.device_id, name: row.name, site: row.site, nodeClass: row.node_class, state: row.state as LifecycleState, since: row.state_since, adopted: row.adopted === 1,
    proof: row.proof as NodeRow['proof'], power: row.power, powerAt: row.power_at, bmcSeenAt: row.bmc_seen_at, drift: driftOf(row), openRun: row.open_run, phase: row.run_phase as RunPhase | null, hold: parse<Failure>(row.run_hold) ?? parse<Failure>(row.hold),
  });

  async function toRun(row: Selectable<RunTable>): Promise<RunRow> {
    const outcome = parse<RunOutcome>(row.outcome);
    const orders = await db.selectFrom('agent_order').selectAll().where('device_id', '=', row.device_id).where('run', '=', row.number).orderBy('id').execute();
    const attempts = await db.selectFrom('boot_attempt').select('id').where('device_id', '=', row.device_id).where('run', '=', row.number).execute();
    return {
      deviceId: row.device_id, run: row.number, kind: row.kind as RunKind, workflowId: row.workflow_id, phase: row.phase as RunPhase, openedAt: row.opened_at, closedAt: row.closed_at,
      end: outcome?.end ?? null, failure: outcome?.failure ?? null, hold: parse<Failure>(row.hold), bootAttempts: attempts.length,
      orders: orders.map((order) => {
        const report = parse<OrderReport>(order.report);
        return {
          orderId: order.id, title: order.title, action: order.action_name, state: order.state, grant: order.grant_no, progress: parse<OrderProgress>(order.progress),
          report: report && { result: report.result, message: report.message, ...(report.evidence && { evidence: report.evidence }) },
          logs: report?.result === 'succeeded' || ['queued', 'consumed'].includes(order.state) ? null : logsPath(row.device_id, row.number),
        };
      }),
    };
  }

  return {
    async list(query) {
      let rows = withRun().orderBy('device.name');
      const { state } = query;
      // A node is held by its own lifecycle, or by its open run.
      if (state === 'held') rows = rows.where((eb) => eb.or([eb('device.state', '=', state), eb('device.hold', 'is not', null), eb('run.hold', 'is not', null)]));
      else if (state) rows = rows.where('device.state', '=', state);
      if (query.site) rows = rows.where('device.site', '=', query.site);
      if (query.class) rows = rows.where('device.node_class', '=', query.class);
      return (await rows.execute()).map(toNode);
    },
    async find(idOrName) {
      const byId = await withRun().where('device.device_id', '=', idOrName).executeTakeFirst();
      if (byId) return toNode(byId);
      // A name is one of a site and tenant; and a device that ended keeps its row when another takes its name over.
      const named = await withRun().where('device.name', '=', idOrName).orderBy('device.device_id').execute();
      const live = named.filter(({ state }) => !isOneOf(ENDED_STATES, state));
      const meant = live.length > 0 ? live : named;
      if (meant.length > 1) throw new MetalflowError('node_ambiguous', { node: idOrName, nodes: meant.map((one) => `${one.device_id} (site ${one.site}, ${one.state})`).join(', ') });
      return meant[0] ? toNode(meant[0]) : null;
    },
    async runs(deviceId) {
      const rows = await db.selectFrom('run').selectAll().where('device_id', '=', deviceId).orderBy('number', 'desc').limit(100).execute();
      return Promise.all(rows.map(toRun));
    },
    async run(deviceId, run) {
      const row = await db.selectFrom('run').selectAll().where('device_id', '=', deviceId).where('number', '=', run).executeTakeFirst();
      return row ? toRun(row) : null;
    },
    journal: (deviceId, limit) => readJournal(db, deviceId, limit),
    async evidence(deviceId) {
      const rows = await db.selectFrom('attestation').selectAll().where('device_id', '=', deviceId).orderBy('id', 'desc').limit(100).execute();
      return rows.map((row) => ({
        attestationId: row.id, at: row.at, bootAttempt: row.boot_attempt, accepted: row.accepted === 1, reason: row.reason, proof: row.proof as 'tpm' | 'unproven', bootMac: row.boot_mac,
        neighbour: parse(row.neighbour), akThumbprint: row.ak_thumbprint,
      }));
    },
    async strangers() {
      const rows = await db.selectFrom('attestation').selectAll().where('device_id', 'is', null).orderBy('id', 'desc').limit(MOST_STRANGERS).execute();
      return rows.map((row) => ({ at: row.at, bootMac: row.boot_mac, systemUuid: row.system_uuid, reason: row.reason, neighbour: parse(row.neighbour), sender: row.sender }));
    },
    refused: () => listRefused(db),
    async recordAudit(line) {
      await db.insertInto('audit').values({ id: newId(now()), at: line.at, by_whom: line.by, role: line.role, what: line.what, device_id: line.deviceId, result: line.result }).execute();
    },
    async ping() {
      try {
        await db.selectFrom('installation').select('row').execute();
      } catch (error) {
        throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
      }
    },
  };
}

/** The store's memory of webhooks: order by `last_updated`, sameness by digest (N1, N3). */
export function createHookLedger({ db }: { db: Db }): HookLedger {
  return {
    async judge(hint) {
      const row = await db.selectFrom('hook').selectAll().where('device_id', '=', hint.deviceId).executeTakeFirst();
      if (!row) return 'new';
      // As text: canonical instants keep their microseconds, which Date would drop.
      if (hint.lastUpdated < row.last_updated) return 'stale';
      return row.digest === hint.digest ? 'repeated' : 'new';
    },
    async remember(hint) {
      const values = { last_updated: hint.lastUpdated, digest: hint.digest };
      // Two are judged before either is remembered: the older of them must not be remembered over the newer.
      await db.insertInto('hook').values({ device_id: hint.deviceId, ...values }).onConflict((c) => c.column('device_id').doUpdateSet(values).where('hook.last_updated', '<=', hint.lastUpdated)).execute();
    },
  };
}
