/** A few worlds that tests take turns in: each test has one for itself, and several tests run at a time. */
import type { TestTemporal } from './temporal.js';
import { createWorld, type World, type WorldOptions } from './world.js';

export interface Lanes {
  /** Waits for a free world, and gives it back however `work` ends. */
  take<R>(work: (world: World) => Promise<R>): Promise<R>;
  close(): Promise<void>;
}

export async function openLanes(temporal: TestTemporal, count: number, options: WorldOptions): Promise<Lanes> {
  const worlds: World[] = [];
  for (let lane = 0; lane < count; lane++) worlds.push(await createWorld(temporal, options));
  const free = [...worlds];
  const waiting: ((world: World) => void)[] = [];
  return {
    async take(work) {
      const world = free.pop() ?? (await new Promise<World>((resolve) => waiting.push(resolve)));
      try {
        return await work(world);
      } finally {
        const next = waiting.shift();
        if (next) next(world);
        else free.push(world);
      }
    },
    async close() {
      for (const world of worlds) await world.close();
    },
  };
}
