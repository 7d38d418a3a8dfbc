/** Keeps orders honest while they are open: passes their deadlines, and heartbeats the activities that mirror them. */
import type { Limits } from '../domain/limits.js';
import type { OrderLedger } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import type { Logger } from '../telemetry/log.js';
import { startLoop, type Loop } from './deliverer.js';

export function startOrderKeeper({ orders, temporal, limits, woken, log }: { orders: OrderLedger; temporal: TemporalPort; limits: Limits; woken: () => void; log: Logger }): Loop {
  // Heartbeats are coalesced to a third of their timeout, also while the order waits to be taken.
  const beatEveryMs = (limits.agentSilence * 1000) / 3;
  // A house that was away heard nobody: what an agent has to say gets the time to be said before its silence is held against it.
  const hearsFrom = Date.now() + limits.agentSilence * 1000;
  return startLoop(Math.min(1000, beatEveryMs / 2), log, async () => {
    if (Date.now() >= hearsFrom && (await orders.passDeadlines(limits.agentSilence)) > 0) woken();
    for (const { orderId, taskToken, withheld, details } of await orders.wantHeartbeat(new Date(Date.now() - beatEveryMs))) {
      const answer = await temporal.heartbeat(taskToken, details).catch((error: unknown) => {
        log.debug({ orderId, err: error }, 'a heartbeat was not taken');
        return null;
      });
      // Cancelled or reset in Temporal: the agent is told to stop at its next progress. A stale token says nothing of the order.
      if (answer === 'cancelled') await orders.cancelByTemporal(orderId);
      else if (answer === 'paused' || (answer === 'on' && withheld)) await orders.withhold(orderId, answer === 'paused');
    }
  });
}
