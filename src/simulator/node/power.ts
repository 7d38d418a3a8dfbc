/** One power-on of a node: everything that runs on it hangs on its signal, and ends with it. */
import { Agent } from 'undici';

export interface Power {
  /** Aborted when the power is cut, and when the machine freezes. */
  readonly signal: AbortSignal;
  /** Connections made on this power; destroyed with it. */
  readonly agent: Agent;
  /** Ends what runs, at once. May be called again. */
  cut(): void;
  /** Something to wait for after a cut. */
  follow(work: Promise<unknown>): void;
  /** Waits until everything that ran has ended, or `limitMs` has passed. */
  settled(limitMs: number): Promise<'settled' | 'still-running'>;
}

export function createPower(): Power {
  const controller = new AbortController();
  const agent = new Agent({ connect: { timeout: 10_000 }, pipelining: 0 });
  const works = new Set<Promise<unknown>>();
  const follow = (work: Promise<unknown>): void => {
    const quiet = work.catch(() => undefined).finally(() => works.delete(quiet));
    works.add(quiet);
  };
  return {
    signal: controller.signal,
    agent,
    cut() {
      if (controller.signal.aborted) return;
      controller.abort(new Error('the power was cut'));
      follow(agent.destroy());
    },
    follow,
    async settled(limitMs) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<'still-running'>((resolve) => (timer = setTimeout(resolve, limitMs, 'still-running')));
      const all = async (): Promise<'settled'> => {
        // What ends may have begun something else meanwhile.
        while (works.size > 0) await Promise.all(works);
        return 'settled';
      };
      try {
        return await Promise.race([all(), limit]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
