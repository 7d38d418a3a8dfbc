/** `metalflow bmc …`: a person at one BMC, from where they sit, by the rules of the house. */
import { userInfo } from 'node:os';
import { examine } from '../bmc/doctor.js';
import { statusOf } from '../bmc/status.js';
import type { Config } from '../config/index.js';
import type { BmcAsk, BmcReport, BmcTarget } from '../contracts/power-by-hand.js';
import { createHand } from '../power/by-hand.js';
import { createBmcLeases } from '../power/lease.js';
import { personCaller, personClock as clock } from '../power/person.js';
import { findTarget, refuseADevicesBmc } from '../power/target.js';
import { silentLogger } from '../telemetry/log.js';
import { openBmcs } from './bmcs.js';
import { openNetbox } from './house.js';
import { findStore } from './open-store.js';
import { createCloser } from './role.js';

/** Seconds that a person waits for whoever talks to the BMC now. */
const PATIENCE_SECONDS = 60;

/** @throws node_not_found, node_ambiguous, device_invalid, netbox_unreachable, store_unavailable; for a command store_not_found, reason_required, bmc_* */
export async function bmcByHand(config: Config, target: BmcTarget, ask: BmcAsk, tell: (text: string) => void): Promise<BmcReport> {
  const closer = createCloser();
  try {
    const { store, lacks } = await findStore(config);
    closer.add(() => store.close());
    const isLook = ask.what === 'status' || ask.what === 'doctor';
    if (lacks && !isLook) throw lacks;
    if (lacks) tell(`${lacks.message}; only the BMC is asked`);
    const netbox = openNetbox(config, silentLogger());
    closer.add(() => netbox.close());
    const { limits } = config;
    const user = userInfo().username;
    const caller = personCaller({ name: user, pid: process.pid, patienceSeconds: PATIENCE_SECONDS, tell });
    const leases = createBmcLeases({ bmc: openBmcs(config, silentLogger()), power: store.power, lockSeconds: limits.bmcLock, clock, caller });

    const found = await findTarget(target, store, netbox);
    const { address, device, subject } = found;
    const expected = device?.systemUuid ?? null;
    switch (ask.what) {
      case 'status':
        return await leases.withBmc(address, async (bmc) => ({ what: 'status', ...subject, ...(await statusOf(bmc, expected)) }));
      case 'doctor':
        return await leases.withBmc(address, async (bmc) => {
          const checks = await examine(bmc, { expected, hasDevice: device !== null, addresses: device?.addresses ?? null });
          return { what: 'doctor', ...subject, checks };
        });
      default: {
        await refuseADevicesBmc(found, store);
        const power = { powerSeconds: limits.poweringOff, settlingSeconds: limits.settling, pollSeconds: limits.powerPoll };
        const hand = createHand({ leases, stores: store, netbox, clock, caller, user, tell, limits: power });
        return { what: ask.what, ...(await hand(found, ask)) };
      }
    }
  } finally {
    await closer.close();
  }
}
