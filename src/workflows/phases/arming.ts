/** Opens the boot attempt, orders one boot from the network, leases the permission to serve it. */
import type { RunContext } from '../run-context.js';
import { sureOfMachine } from './machine.js';
import { NEXT, STOPPED, type PhaseResult } from './result.js';

export async function arming(run: RunContext): Promise<PhaseResult> {
  run.show('the boot attempt');
  const opened = await run.central(run.limits.arming, 'open a boot attempt').openBootAttempt(run.ref);
  run.attempt = { id: opened.bootAttempt, number: opened.number };
  // The node was read off: whatever system showed itself was not installed in this attempt.
  run.heard.systemSeen = false;

  for (;;) {
    const unsure = await sureOfMachine(run);
    if (unsure) return unsure;
    const { bmc } = run.plan!;
    run.show('the BMC to accept one boot from the network');
    const armed = await run.site(run.limits.arming, `one-time PXE via ${bmc.type.toUpperCase()} ${bmc.host}`).bootOnceFromNetwork({ ...run.ref, bmc, limitSeconds: run.limits.arming });
    if (armed.kind === 'armed') break;
    const end = await run.hold(armed.failure);
    if (end.kind === 'stop') return STOPPED;
  }

  await run.central(run.limits.arming, `lease netboot permission for boot attempt ${opened.number}`).leasePermission({ ...run.ref, bootAttempt: opened.bootAttempt, leaseSeconds: run.limits.permissionLease });
  run.keepPermission(opened.bootAttempt);
  return NEXT;
}
