/** The worker role's loop that delivers the outbox: signals to runs and lifecycles, completions to activities. */
import type { TemporalPort } from '../contracts/temporal-port.js';
import type { Outbox, OutboxMessage } from '../store/index.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import type { Logger } from '../telemetry/log.js';

/** Between two looks when nobody woke it: another process may have written. */
const LOOK_EVERY_MS = 150;

export interface Loop {
  /** Looks at once. */
  wake(): void;
  close(): Promise<void>;
}

export function startDeliverer({ outbox, temporal, log, crash = noCrash }: { outbox: Outbox; temporal: TemporalPort; log: Logger; crash?: CrashPoint }): Loop {
  return startLoop(LOOK_EVERY_MS, log, async () => {
    for (const row of await outbox.due(50)) {
      try {
        const result = await deliver(row.message, temporal);
        crash(`deliver-${row.message.kind}:after-effect`);
        await outbox.delivered(row.id, result);
      } catch (error) {
        log.warn({ outbox: row.id, tries: row.tries, err: error }, 'a message could not be delivered; it is tried again');
        await outbox.failed(row.id, row.tries);
      }
    }
  });
}

/** `absent` is an end too: a run that is over, or a token that is stale, wants to hear nothing; the fact itself is in the store. */
async function deliver(message: OutboxMessage, temporal: TemporalPort): Promise<string> {
  switch (message.kind) {
    case 'signal-run': return temporal.signal(message.workflowId, message.name, message.payload);
    case 'signal-lifecycle': await temporal.signalLifecycle(message.deviceId, message.name, message.payload); return 'delivered';
    case 'complete': return temporal.complete(message.taskToken, message.payload);
  }
}

/** Runs `work` again and again, one at a time; an error is logged and the next look comes all the same. */
export function startLoop(everyMs: number, log: Logger, work: () => Promise<void>): Loop {
  let isClosing = false;
  let isDue = false;
  let rest: (() => void) | null = null;
  const running = (async () => {
    while (!isClosing) {
      isDue = false;
      await work().catch((error: unknown) => log.error({ err: error }, 'a loop of the worker failed; it goes on'));
      if (isDue || isClosing) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs);
        rest = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      rest = null;
    }
  })();
  const wake = (): void => {
    isDue = true;
    rest?.();
  };
  return {
    wake,
    async close() {
      isClosing = true;
      wake();
      await running;
    },
  };
}
