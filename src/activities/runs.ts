/** A run's own bookkeeping, and its watching from outside. */
import type { Failure } from '../domain/errors.js';
import type { RunKind, RunPhase } from '../domain/runs.js';
import type { Limits } from '../domain/limits.js';
import type { RunInput, RunOutcome, WatchedEnd } from '../contracts/messages.js';
import { MetalflowError } from '../domain/errors.js';
import type { BmcAddress } from '../contracts/device.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { Stores } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { approvalOf } from '../power/machine-check.js';
import { cancellationSignal, fenceRef, heartbeat, pause, type RunRef } from './context.js';
import { firstUnknownRun } from './run-numbers.js';

export interface RunActivitiesDeps {
  readonly stores: Pick<Stores, 'fence' | 'runs' | 'devices' | 'installation'>;
  readonly temporal: TemporalPort;
  readonly netbox: NetboxClient;
  readonly limits: Limits;
  readonly crash?: CrashPoint;
}


export function createRunActivities({ stores, temporal, netbox, limits, crash = noCrash }: RunActivitiesDeps) {
  return {
    /** Draws the run's number, or finds the run that is open already. @throws installation_mismatch when Temporal knows the number */
    async openRun(input: { deviceId: string; kind: RunKind; asked: RunInput['asked']; intake: RunInput['intake'] }): Promise<{ input: RunInput; workflowId: string; isNew: boolean }> {
      const opened = await stores.runs.open(input.deviceId, input.kind, { asked: input.asked, intake: input.intake });
      crash('openRun:after-effect');
      if (opened.isNew && (await temporal.look(opened.workflowId)).kind !== 'absent') {
        // The number was used before: the store is older than Temporal (a restored backup).
        const why = `Temporal knows ${opened.workflowId}, which the store has only just opened`;
        await stores.runs.close(input.deviceId, opened.run, { end: 'failed', failure: null, destroyed: false }, null);
        // All that Temporal knows are spent, so that one adoption is enough.
        await stores.runs.skipTo(input.deviceId, await firstUnknownRun(temporal, input.deviceId, opened.run + 1));
        await stores.installation.distrustDevice(input.deviceId, why);
        throw new MetalflowError('installation_mismatch', { why });
      }
      const device = (await stores.devices.find(input.deviceId))!;
      return {
        workflowId: opened.workflowId,
        isNew: opened.isNew,
        input: { deviceId: input.deviceId, nodeName: device.name, site: device.site, run: opened.run, kind: opened.kind, limits, ...opened.begun },
      };
    },

    /** However a run ended: the outcome is written once, and everything it had opened is withdrawn. Returns the outcome that stands. */
    async closeRun(input: RunRef & { outcome: RunOutcome }): Promise<RunOutcome> {
      return stores.runs.close(input.deviceId, input.run, input.outcome, null);
    },

    /** The run's own last act. */
    async finishRun(input: RunRef & { outcome: RunOutcome }): Promise<RunOutcome> {
      const ref = fenceRef(input);
      // A try that died behind the write finds its run closed, and closed by itself.
      const standing = await stores.runs.standing(ref);
      if (standing) return standing;
      await stores.fence.enter(ref);
      return stores.runs.close(input.deviceId, input.run, input.outcome, ref);
    },

    /**
     * Follows a run by its workflow id, across resets: a Terminated is believed only when no newer run of the id is running.
     * Survives the lifecycle's continue-as-new, since the next lifecycle watches again.
     */
    async watchRun(input: { workflowId: string }): Promise<WatchedEnd> {
      const beat = setInterval(() => heartbeat({ watches: input.workflowId }), (limits.activityTry * 1000) / 6);
      try {
        for (;;) {
          const seen = await temporal.look(input.workflowId);
          if (seen.kind === 'absent') return { kind: 'never-started' };
          if (seen.kind === 'closed' && seen.how !== 'completed') return { kind: 'terminated' };
          const end = await temporal.awaitOutcome(input.workflowId, cancellationSignal());
          if (end.kind === 'completed') return { kind: 'ended', outcome: end.outcome };
          await pause(500);
        }
      } finally {
        clearInterval(beat);
      }
    },

    /** Takes the fence (again) and notes where the run is. `fence` is the Temporal run that holds it. */
    async enterPhase(input: RunRef & { phase: RunPhase; note: string }): Promise<{ fence: string; takenOver: boolean }> {
      const ref = fenceRef(input);
      const entry = await stores.fence.enter(ref);
      await stores.runs.enterPhase(ref, input.phase, input.note);
      return { fence: ref.temporalRunId, takenOver: entry === 'taken-over' };
    },

    async noteHold(input: RunRef & { hold: Failure | null; tellNetbox: boolean }): Promise<void> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      await stores.runs.setHold(ref, input.hold);
      if (input.hold && input.tellNetbox) await tell(input, 'warning', `run ${input.run} is held: ${input.hold.message}. What to do: ${input.hold.hint}`);
    },

    /** A hold that has lasted: said louder, once. */
    async alertHold(input: RunRef & { hold: Failure; seconds: number }): Promise<void> {
      const text = `run ${input.run} has been held for ${Math.round(input.seconds / 60)} min: ${input.hold.message}. What to do: ${input.hold.hint}`;
      await stores.devices.journal(input.deviceId, input.run, 'hold', text);
      await tell(input, 'danger', text);
    },

    async noteVerb(input: RunRef & { text: string; by: string }): Promise<void> {
      await stores.devices.journal(input.deviceId, input.run, 'verb', input.text, input.by);
    },

    /** @param input.uuid as it was read behind `bmc`; empty when there was none */
    async approveMachine(input: RunRef & { uuid: string; bmc: BmcAddress; by: string }): Promise<void> {
      await stores.fence.enter(fenceRef(input));
      await stores.devices.approveUuid(input.deviceId, approvalOf(input.uuid, input.bmc), input.by);
    },
  };

  /** A journal entry in NetBox is a courtesy: NetBox being away stops no run. */
  async function tell(input: RunRef, kind: 'info' | 'warning' | 'danger', text: string): Promise<void> {
    await netbox.addJournalEntry(input.deviceId, kind, text).catch(() => undefined);
  }
}
export type RunActivities = ReturnType<typeof createRunActivities>;
