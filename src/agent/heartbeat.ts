/** Tells the plane how far the work is, and that the agent lives; carries the plane's `stop` back. */
import type { OrderProgress } from '../contracts/order.js';
import type { ProgressResponse } from '../contracts/agent-api.js';
import type { Answer } from './api.js';
import type { Sleep } from './sleep.js';

export interface Pace {
  /** News are sent at most this often. */
  readonly progressMs: number;
  /** And without news at least this often. */
  readonly heartbeatMs: number;
}
export const DEFAULT_PACE: Pace = { progressMs: 1000, heartbeatMs: 10_000 };

/** `stop`: the order was cancelled or its run is over. `revoked`: the token no longer speaks for this node. `gone`: the plane knows no such order of ours. */
export type StopReason = 'stop' | 'revoked' | 'gone';

export interface Heartbeat {
  update(progress: OrderProgress): void;
  /** Waits for the message on the wire, so that none overtakes the report. */
  end(): Promise<void>;
}

export interface HeartbeatDeps {
  readonly send: (progress: OrderProgress) => Promise<Answer<ProgressResponse>>;
  readonly onStop: (why: StopReason) => void;
  readonly sleep: Sleep;
  readonly pace: Pace;
}

/** An unreachable plane stops nothing: the order was consumed, and its outcome will be reported. */
function stopReason(answer: Answer<ProgressResponse>): StopReason | null {
  switch (answer.kind) {
    case 'ok':
      return answer.value.go === 'stop' ? 'stop' : null;
    case 'unauthorized':
      return 'revoked';
    case 'refused':
      return 'gone';
    case 'empty':
    case 'unavailable':
      return null;
  }
}

export function startHeartbeat({ send, onStop, sleep, pace }: HeartbeatDeps): Heartbeat {
  const ended = new AbortController();
  let latest: OrderProgress = { done: 0, total: 0, unit: 'bytes' };
  let news = true;

  const loop = async (): Promise<void> => {
    for (let quietMs = 0; !ended.signal.aborted; quietMs += pace.progressMs) {
      if (news || quietMs >= pace.heartbeatMs) {
        news = false;
        quietMs = 0;
        const why = stopReason(await send(latest));
        if (why) return onStop(why);
      }
      await sleep(pace.progressMs, ended.signal);
    }
  };
  const running = loop();
  return {
    update(progress) {
      latest = progress;
      news = true;
    },
    async end() {
      ended.abort();
      await running;
    },
  };
}
