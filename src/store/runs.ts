/** Runs: their numbers, phases, plans, and the one outcome that stands. */
import { MetalflowError } from '../domain/errors.js';
import { DEFAULT_LIMITS, type Limits } from '../domain/limits.js';
import type { RunKind, RunPhase } from '../domain/runs.js';
import { runWorkflowId, type RunOutcome } from '../contracts/messages.js';
import type { RunPlan } from '../contracts/plan.js';
import type { BegunWith, RunStore } from '../contracts/store.js';
import type { Tallied } from '../contracts/tally.js';
import { lockedTransaction, type Db } from './database.js';
import { assertHeld } from './fence.js';
import { assertTrusted } from './installation.js';
import { prolongInstallCodes } from './install-codes.js';
import { appendJournal } from './journal.js';
import { heldFor, limitPassedOf, secondsBetween, tally } from './tally.js';
import { voidWhatIsOpen } from './voiding.js';

export function createRunStore({ db, now, limits = DEFAULT_LIMITS }: { db: Db; now: () => Date; limits?: Limits }): RunStore {
  const codesGoodUntil = (): string => new Date(now().getTime() + limits.installCode * 1000).toISOString();

  return {
    open: (deviceId, kind, begun) =>
      lockedTransaction(db, deviceId, async (tx) => {
        await assertTrusted(tx, deviceId);
        const device = await tx.selectFrom('device').select(['next_run', 'open_run']).where('device_id', '=', deviceId).executeTakeFirstOrThrow();
        if (device.open_run !== null) {
          const open = await tx.selectFrom('run')
            .select(['number', 'kind', 'asked', 'workflow_id'])
            .where('device_id', '=', deviceId).where('number', '=', device.open_run)
            .executeTakeFirstOrThrow();
          return { run: open.number, kind: open.kind as RunKind, workflowId: open.workflow_id, begun: JSON.parse(open.asked) as BegunWith, isNew: false };
        }
        const run = device.next_run;
        const workflowId = runWorkflowId(deviceId, run);
        const at = now().toISOString();
        await tx
          .insertInto('run')
          .values({
            device_id: deviceId, number: run, kind, asked: JSON.stringify(begun), workflow_id: workflowId, fence: null, opened_at: at, closed_at: null, phase: 'planning', phase_since: at, hold: null,
            plan: null, taken_at: null, cleared_at: null, destroyed: 0, outcome: null,
          })
          .execute();
        // The number is spent here, whatever becomes of the run.
        await tx.updateTable('device').set({ next_run: run + 1, open_run: run }).where('device_id', '=', deviceId).execute();
        await appendJournal(tx, now(), { deviceId, run, kind: 'run', text: `run ${run} (${kind}) opened` });
        return { run, kind, workflowId, begun, isNew: true };
      }),

    async nextNumber(deviceId) {
      const row = await db.selectFrom('device').select('next_run').where('device_id', '=', deviceId).executeTakeFirst();
      return row?.next_run ?? 1;
    },

    async skipTo(deviceId, next) {
      await db.updateTable('device').set({ next_run: next }).where('device_id', '=', deviceId).where('next_run', '<', next).execute();
    },

    enterPhase: (ref, phase, note) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        const at = now();
        const before = await tx.selectFrom('run')
          .select(['kind', 'phase', 'phase_since'])
          .where('device_id', '=', ref.deviceId).where('number', '=', ref.run)
          .executeTakeFirstOrThrow();
        // Entered again after a reset, or by a try that died behind its write: one visit.
        const isAnother = before.phase !== phase;
        if (isAnother) await tally(tx, phaseLeft(before, at));
        await tx.updateTable('run')
          .set({ phase, hold: null, ...(isAnother && { phase_since: at.toISOString() }) })
          .where('device_id', '=', ref.deviceId).where('number', '=', ref.run)
          .execute();
        await prolongInstallCodes(tx, ref, phase, codesGoodUntil());
        await appendJournal(tx, now(), { deviceId: ref.deviceId, run: ref.run, kind: 'phase', text: note ? `${phase}: ${note}` : phase });
      }),

    setHold: (ref, hold) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        const before = await tx.selectFrom('run').select('hold').where('device_id', '=', ref.deviceId).where('number', '=', ref.run).executeTakeFirstOrThrow();
        if (hold && JSON.stringify(hold) !== before.hold) await tally(tx, ...heldFor(hold));
        const { phase } = await tx.updateTable('run')
          .set({ hold: hold && JSON.stringify(hold) })
          .where('device_id', '=', ref.deviceId).where('number', '=', ref.run)
          .returning('phase')
          .executeTakeFirstOrThrow();
        // Whoever resumes a run that waited for its system in vain has it wait again.
        if (hold === null) await prolongInstallCodes(tx, ref, phase as RunPhase, codesGoodUntil());
        await appendJournal(tx, now(), { deviceId: ref.deviceId, run: ref.run, kind: 'hold', text: hold ? `held (${hold.code}): ${hold.message}` : 'the hold ended' });
      }),

    pinPlan: (ref, plan) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        await tx.updateTable('run').set({ plan: JSON.stringify(plan) }).where('device_id', '=', ref.deviceId).where('number', '=', ref.run).execute();
      }),

    async plan(deviceId, run) {
      const row = await db.selectFrom('run').select('plan').where('device_id', '=', deviceId).where('number', '=', run).executeTakeFirst();
      return row?.plan ? (JSON.parse(row.plan) as RunPlan) : null;
    },

    async taking(deviceId, run) {
      const row = await db.selectFrom('run').select(['taken_at', 'cleared_at']).where('device_id', '=', deviceId).where('number', '=', run).executeTakeFirst();
      if (row?.cleared_at) return 'cleared';
      return row?.taken_at ? 'marked' : 'not-taken';
    },

    markTaken: (ref) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        await tx.updateTable('run')
          .set({ taken_at: now().toISOString() })
          .where('device_id', '=', ref.deviceId).where('number', '=', ref.run).where('taken_at', 'is', null)
          .execute();
      }),

    markCleared: (ref) =>
      lockedTransaction(db, ref.deviceId, async (tx) => {
        await assertHeld(tx, ref);
        await tx.updateTable('run').set({ cleared_at: now().toISOString() }).where('device_id', '=', ref.deviceId).where('number', '=', ref.run).execute();
      }),

    async standing(ref) {
      const row = await db.selectFrom('run')
        .select('outcome')
        .where('device_id', '=', ref.deviceId).where('number', '=', ref.run).where('fence', '=', ref.temporalRunId)
        .executeTakeFirst();
      return row?.outcome ? (JSON.parse(row.outcome) as RunOutcome) : null;
    },

    close: (deviceId, run, outcome, ref) =>
      lockedTransaction(db, deviceId, async (tx) => {
        const row = await tx.selectFrom('run')
          .select(['outcome', 'destroyed', 'kind', 'opened_at', 'phase', 'phase_since'])
          .where('device_id', '=', deviceId).where('number', '=', run)
          .executeTakeFirst();
        if (!row) throw new MetalflowError('installation_mismatch', { why: `the store has no run ${run} of device ${deviceId}` });
        if (row.outcome) return JSON.parse(row.outcome) as RunOutcome;
        if (ref) await assertHeld(tx, ref);
        const standing: RunOutcome = { ...outcome, destroyed: row.destroyed === 1 };
        await voidWhatIsOpen(tx, deviceId, now(), `run ${run} ended: ${outcome.end}`);
        // The code of an installed system lives on; one whose install did not end well must not.
        if (outcome.end !== 'done') await tx.updateTable('install_code')
          .set({ revoked_at: now().toISOString() })
          .where('device_id', '=', deviceId).where('run', '=', run).where('revoked_at', 'is', null)
          .execute();
        await tx.updateTable('run')
          .set({ outcome: JSON.stringify(standing), closed_at: now().toISOString(), hold: null })
          .where('device_id', '=', deviceId).where('number', '=', run)
          .execute();
        await tx.updateTable('device').set({ open_run: null }).where('device_id', '=', deviceId).where('open_run', '=', run).execute();
        await tally(tx, phaseLeft(row, now()), runEnded(row, standing, now()), ...(outcome.end === 'failed' ? limitPassedOf(outcome.failure) : []));
        const why = outcome.failure ? ` (${outcome.failure.code}): ${outcome.failure.message}` : '';
        await appendJournal(tx, now(), { deviceId, run, kind: 'run', text: `run ${run} (${row.kind}) ended: ${outcome.end}${why}` });
        return standing;
      }),
  };
}

/** @param row of the run, as its phase ends */
const phaseLeft = (row: { kind: string; phase: string; phase_since: string }, at: Date): Tallied =>
  ({ what: 'phase-left', labels: { kind: row.kind as RunKind, phase: row.phase as RunPhase }, seconds: secondsBetween(row.phase_since, at) });

const runEnded = (row: { kind: string; opened_at: string }, { end, failure }: RunOutcome, at: Date): Tallied =>
  ({ what: 'run-ended', labels: { kind: row.kind as RunKind, end, code: failure?.code ?? 'none' }, seconds: secondsBetween(row.opened_at, at) });
