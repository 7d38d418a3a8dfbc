import { createCappedBmcFactory } from '../../src/bmc/capped-factory.js';
import { createManualBmc } from '../../src/bmc/manual.js';
import type { Bmc, CommandResult } from '../../src/contracts/bmc.js';
import type { PowerReading } from '../../src/domain/power.js';

const ON: PowerReading = { kind: 'read', power: 'on' };

/** Calls that last until they are let go. */
class Bench {
  readonly begun: string[] = [];
  readonly #ends: (() => void)[] = [];
  mostAtOnce = 0;
  #now = 0;

  async #call<T>(name: string, result: T): Promise<T> {
    this.begun.push(name);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#now);
    await new Promise<void>((resolve) => this.#ends.push(resolve));
    this.#now -= 1;
    if (name.startsWith('broken')) throw new Error('broken');
    return result;
  }
  async open(host: string, most: number, waitMs?: number, type: 'amt' | 'manual' = 'amt'): Promise<Bmc> {
    this.#factory ??= createCappedBmcFactory({
      factory: {
        open: async (address) => ({
          ...createManualBmc(address), observePower: () => this.#call(`${address.host} power`, ON), powerOff: () => this.#call<CommandResult>(`${address.host} off`, { kind: 'accepted' }),
        }),
      },
      most, ...(waitMs !== undefined && { waitMs }),
    });
    return this.#factory.open({ type, host });
  }
  #factory: ReturnType<typeof createCappedBmcFactory> | undefined;
  /** Ends the oldest call, and lets what follows from it happen. */
  async endOne(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#ends.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('no more calls are under way than the cap allows, and those that wait go in the order they came', async () => {
  const bench = new Bench();
  const bmcs = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((host) => bench.open(host, 2)));
  const calls = bmcs.map((bmc) => bmc.observePower());
  await new Promise((resolve) => setImmediate(resolve));
  expect(bench.begun).toEqual(['a power', 'b power']);
  for (const _bmc of bmcs) await bench.endOne();
  expect(await Promise.all(calls)).toEqual([ON, ON, ON, ON, ON]);
  expect([bench.begun, bench.mostAtOnce]).toEqual([['a power', 'b power', 'c power', 'd power', 'e power'], 2]);
});

test('a call that gets no turn in time was not sent, and says which setting to look at', async () => {
  const bench = new Bench();
  const [first, second] = [await bench.open('a', 1, 5), await bench.open('b', 1)];
  const held = first.observePower();
  expect(await second.powerOff()).toEqual({ kind: 'not-sent', why: expect.stringContaining('METALFLOW_BMC_CALLS') });
  expect(await second.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', notAsked: true });
  expect(bench.begun).toEqual(['a power']);
  await bench.endOne();
  expect(await held).toEqual(ON);
  // Its turn was not lost on those that gave up.
  const after = second.powerOff();
  await bench.endOne();
  expect(await after).toEqual({ kind: 'accepted' });
});

test('a call that throws gives its turn back', async () => {
  const bench = new Bench();
  const [broken, other] = [await bench.open('broken', 1), await bench.open('b', 1)];
  const [thrown, next] = [broken.observePower().catch((error: Error) => error.message), other.observePower()];
  await bench.endOne();
  await bench.endOne();
  expect([await thrown, await next]).toEqual(['broken', ON]);
});

test('a node that a person powers waits for no turn', async () => {
  const bench = new Bench();
  const [held, manual] = [(await bench.open('a', 1)).observePower(), await bench.open('', 1, 5, 'manual')];
  const read = manual.observePower();
  await bench.endOne();
  await bench.endOne();
  expect([await held, await read]).toEqual([ON, ON]);
});
