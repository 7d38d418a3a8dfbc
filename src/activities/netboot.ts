/** Boot attempts and the netboot permission. */
import type { Stores } from '../contracts/store.js';
import { cancellationSignal, fenceRef, heartbeat, pause, type RunRef } from './context.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';

export function createNetbootActivities({ stores, crash = noCrash }: { stores: Pick<Stores, 'fence' | 'attempts' | 'permissions'>; crash?: CrashPoint }) {
  return {
    /** Draws the id that everything this boot causes will carry; former attempts and tokens are void. */
    async openBootAttempt(input: RunRef): Promise<{ bootAttempt: string; number: number }> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      const opened = await stores.attempts.open(ref);
      crash('openBootAttempt:after-effect');
      return opened;
    },

    /** The boot in which the node waits already becomes an attempt of this run. */
    async adoptIntakeAttempt(input: RunRef & { attestationId: string }): Promise<{ bootAttempt: string; number: number }> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      return stores.attempts.adoptIntake(ref, input.attestationId);
    },

    /** The first lease, before the node is powered on. */
    async leasePermission(input: RunRef & { bootAttempt: string; leaseSeconds: number }): Promise<void> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      await stores.permissions.lease(ref, input.bootAttempt, input.leaseSeconds);
    },

    /**
     * Renews the lease for as long as the run wants it: one activity, so that a day of renewals is not a history. It ends when it is
     * cancelled, or with `run_stale`, `run_closed` or `attempt_superseded` when the run may no longer have it; the lease then lapses.
     */
    async keepPermission(input: RunRef & { bootAttempt: string; leaseSeconds: number; everySeconds: number }): Promise<void> {
      const ref = fenceRef(input);
      for (let renewals = 0; ; renewals++) {
        await stores.fence.enter(ref);
        await stores.permissions.lease(ref, input.bootAttempt, input.leaseSeconds);
        crash('keepPermission:after-effect');
        // Heartbeats come more often than renewals, so that a cancellation is heard at once.
        for (let waited = 0; waited < input.everySeconds; waited += 5) {
          heartbeat({ bootAttempt: input.bootAttempt, renewals });
          cancellationSignal().throwIfAborted();
          await pause(Math.min(5, input.everySeconds - waited) * 1000);
        }
      }
    },

    async withdrawPermission(input: RunRef & { bootAttempt: string | null }): Promise<void> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      if (input.bootAttempt) await stores.attempts.assertOpen(ref, input.bootAttempt);
      await stores.permissions.withdraw(ref);
      crash('withdrawPermission:after-effect');
    },

    /** Was the boot file of this attempt served? Asked when a signal says so: a signal alone moves nothing. */
    async confirmBootSeen(input: RunRef & { bootAttempt: string }): Promise<boolean> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      return stores.attempts.bootSeen(ref, input.bootAttempt);
    },
  };
}
export type NetbootActivities = ReturnType<typeof createNetbootActivities>;
