/**
 * Looks at the power of every node of a site, now and then. It reads and tells; it has nothing to send a command with. A BMC that
 * somebody talks to is passed over: that conversation is observation enough.
 */
import { powerWord, wasNotAsked, type PowerReading } from '../domain/power.js';
import { lifecycleId, SIGNALS } from '../contracts/messages.js';
import type { BmcFactory } from '../contracts/bmc.js';
import type { PowerWalk, PowerWatchInput, PowerWatchStore, WatchedNode } from '../contracts/power-watch.js';
import type { Stores } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { isMetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import type { Clock } from '../power/caller.js';
import { createBmcLeases, type LeasedBmc } from '../power/lease.js';
import { compareMachine } from '../power/machine-check.js';
import { createPowerReader } from '../power/reader.js';
import { activityCaller, activityClock, cancellationSignal, heartbeat } from './context.js';

export interface PowerWatchDeps {
  readonly bmc: BmcFactory;
  readonly stores: Pick<Stores, 'power' | 'devices'> & { readonly powerWatch: PowerWatchStore };
  readonly temporal: Pick<TemporalPort, 'signal'>;
  readonly lockSeconds: number;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
}

type Look = 'busy' | 'known' | 'unknown';

export function createPowerWatchActivities({ bmc: factory, stores, temporal, lockSeconds, log, clock = activityClock, random = Math.random }: PowerWatchDeps) {
  const leases = createBmcLeases({ bmc: factory, power: stores.power, lockSeconds, clock, caller: activityCaller });
  const reader = createPowerReader({ stores, clock });

  /** A change is believed of the right machine only: the address may have gone to another. */
  async function read(bmc: LeasedBmc, node: WatchedNode, settlingSeconds: number): Promise<PowerReading> {
    const reading = await reader.read(bmc, node.deviceId, settlingSeconds);
    if (reading.kind !== 'read' || powerWord(reading) === node.power) return reading;
    const machine = await compareMachine(bmc, { deviceId: node.deviceId, systemUuid: node.systemUuid, limitSeconds: 0 }, stores.devices);
    if (machine.kind === 'same' || (machine.kind === 'differs' && machine.failure.code === 'bmc_uuid_unreadable')) return reading;
    return { kind: 'unknown', code: 'bmc_unreachable', why: machine.failure.message, ...(machine.kind === 'unknown' && machine.notAsked && { notAsked: true as const }) };
  }

  async function look(node: WatchedNode, settlingSeconds: number): Promise<Look> {
    const news = await leases.withIdleBmc(node.bmc, async (bmc) => {
      const reading = await read(bmc, node, settlingSeconds);
      // This worker was too busy to ask: that is no word of the BMC's.
      if (wasNotAsked(reading)) return 'busy';
      const power = powerWord(reading);
      return { power, ...(await stores.powerWatch.saw(node.deviceId, power)) };
    });
    if (news === 'busy') return 'busy';
    if (news.driftChanged) log[news.drift ? 'warn' : 'info']({ device: node.deviceId, node: node.name, reads: news.power, drift: news.drift }, news.drift ? 'power drift' : 'the power drift is over');
    if (news.tell) {
      // A lifecycle that has ended wants to hear nothing; a new one reads the store.
      await temporal.signal(lifecycleId(node.deviceId), SIGNALS.powerSeen.name, { power: news.tell });
      await stores.powerWatch.told(node.deviceId, news.tell);
    }
    return news.power === 'unknown' || news.power === 'settling' ? 'unknown' : 'known';
  }

  /** One node's trouble is not the next one's. */
  async function lookPatiently(node: WatchedNode, settlingSeconds: number): Promise<Look> {
    try {
      return await look(node, settlingSeconds);
    } catch (error) {
      cancellationSignal().throwIfAborted();
      log.warn({ device: node.deviceId, node: node.name, err: error }, 'the power of a node could not be looked at');
      // A secret that is missing, or a type without driver: nobody can read it, so it is unknown.
      if (isMetalflowError(error) && (error.code === 'bmc_auth_failed' || error.code === 'device_invalid')) await stores.powerWatch.saw(node.deviceId, 'unknown');
      return 'unknown';
    }
  }

  return {
    /** One walk over the nodes of a site, some at a time. */
    async watchPower({ site, atOnce, jitterSeconds, settlingSeconds }: PowerWatchInput): Promise<PowerWalk> {
      const nodes = await stores.powerWatch.nodes(site);
      const left = [...nodes];
      const counts: Record<Look, number> = { busy: 0, known: 0, unknown: 0 };
      const lane = async (): Promise<void> => {
        for (let node = left.shift(); node; node = left.shift()) {
          await clock.pause(random() * jitterSeconds * 1000);
          counts[await lookPatiently(node, settlingSeconds)]++;
          heartbeat({ ...counts, of: nodes.length });
        }
      };
      await Promise.all(Array.from({ length: Math.min(atOnce, nodes.length) }, lane));
      await stores.powerWatch.walked(site);
      const drifted = (await stores.powerWatch.all()).filter(({ deviceId, drift }) => drift && nodes.some((node) => node.deviceId === deviceId)).length;
      return { observed: counts.known + counts.unknown, unknown: counts.unknown, busy: counts.busy, drifted };
    },
  };
}

export type PowerWatchActivities = ReturnType<typeof createPowerWatchActivities>;
