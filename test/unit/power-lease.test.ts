/** One conversation with one BMC at a time, and no request that outlives the lease under which it began. */
import { activityCaller } from '../../src/activities/context.js';
import { createBmcLeases, type BmcLeases, type LeasedBmc } from '../../src/power/lease.js';
import type { Bmc, CommandResult } from '../../src/contracts/bmc.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { runActivity } from '../support/activity-env.js';
import { VirtualTime } from '../support/power/virtual-time.js';

const BMC: BmcAddress = { type: 'amt', host: '10.0.0.7' };
const LOCK_SECONDS = 60;

let time: VirtualTime;
let holder: { name: string; until: number } | null;
let requestMs: number;
let storeMs: number;
let opened: { closed: boolean }[];
let sent: string[];
let beats: unknown[];
let leases: BmcLeases;
beforeEach(() => {
  [time, holder, requestMs, storeMs, opened, sent, beats] = [new VirtualTime(), null, 10, 0, [], [], []];
  const answers = async <T>(answer: T): Promise<T> => (await time.pause(requestMs), answer);
  const open = async (address: BmcAddress): Promise<Bmc> => {
    const conversation = { closed: false };
    opened.push(conversation);
    const command = (name: string): Promise<CommandResult> => (sent.push(name), answers({ kind: 'accepted' }));
    return {
      address, observePower: () => answers({ kind: 'read', power: 'on' }), machineUuid: () => answers({ kind: 'unreadable', why: '' }), powerOn: () => command('on'), powerOff: () => command('off'),
      bootOnceFromNetwork: () => command('network'), identify: async () => null, capabilities: async () => null, diagnose: async () => [], close: async () => void (conversation.closed = true),
    };
  };
  let drawn = 0;
  leases = createBmcLeases({
    bmc: { open }, lockSeconds: LOCK_SECONDS, clock: time, caller: { ...activityCaller, drawHolder: () => `holder-${++drawn}` },
    power: {
      async lock(_bmc, name, seconds) {
        if (holder && holder.name !== name && holder.until >= time.now()) return false;
        holder = { name, until: time.now() + seconds * 1000 };
        await time.pause(storeMs);
        return true;
      },
      unlock: async (_bmc, name) => void (holder?.name === name && (holder = null)),
    },
  });
});

const during = <R>(work: (bmc: LeasedBmc) => Promise<R>): Promise<R> =>
  time.run(runActivity({ workflowId: 'node/7/run/1', temporalRunId: 'run-1', onHeartbeat: (details) => void beats.push(details) }, () => leases.withBmc(BMC, work), undefined));

test('the lease is had for the conversation, and given back', async () => {
  expect(await during(async (bmc) => [bmc.lease, holder?.name, await bmc.observePower()])).toEqual([{ bmc: '10.0.0.7', holder: 'holder-1', seconds: 60 }, 'holder-1', { kind: 'read', power: 'on' }]);
  expect([holder, opened]).toEqual([null, [{ closed: true }]]);
});

test('whoever comes second waits until the first is done, or its lease over; each conversation is another holder', async () => {
  holder = { name: 'a worker that died', until: time.now() + 30_000 };
  const began = time.now();
  await during((bmc) => bmc.observePower());
  expect(time.now() - began).toBeGreaterThan(30_000);
  expect(beats).toContainEqual({ waitingFor: 'another conversation with the BMC 10.0.0.7' });
  let second: string | undefined;
  await during(async () => void (second = holder?.name));
  expect(second).toBe('holder-2');
});

test('the power watch does not wait: it passes over a BMC that is talked to', async () => {
  holder = { name: 'a run', until: time.now() + 30_000 };
  const look = (): Promise<unknown> => time.run(runActivity({ workflowId: 'power-watch/lab', temporalRunId: 'r' }, () => leases.withIdleBmc(BMC, (bmc) => bmc.observePower()), undefined));
  expect(await look()).toBe('busy');
  expect(opened).toEqual([]);
  holder = null;
  expect(await look()).toEqual({ kind: 'read', power: 'on' });
});

test('a request that outlives its share of the lease is hung up on, and the next one has a connection of its own', async () => {
  requestMs = 300_000;
  const [first, second] = await during(async (bmc) => {
    const late = await bmc.send('off', time.now());
    const still = time.now() <= holder!.until;
    requestMs = 10;
    return [{ late, still }, await bmc.observePower()];
  });
  expect(first).toEqual({ late: { kind: 'unknown', why: 'no end within 45 s' }, still: true });
  expect(second).toEqual({ kind: 'read', power: 'on' });
  expect(opened).toHaveLength(2);
  expect(opened.every(({ closed }) => closed)).toBe(true);
});

test('a lease that would end before a request could is renewed first', async () => {
  await during(async (bmc) => {
    await time.pause(50_000);
    await bmc.observePower();
    expect(holder!.until - time.now()).toBeGreaterThan(45_000);
  });
});

test('a lease that was lost ends the conversation: nothing more is asked', async () => {
  await expect(during(async (bmc) => {
    await time.pause(61_000);
    holder = { name: 'another worker', until: time.now() + 60_000 };
    return bmc.observePower();
  })).rejects.toMatchObject({ code: 'bmc_busy', retryable: true });
  expect(holder?.name).toBe('another worker');
});

test('a store that stalls until the lease it renewed is nearly over is no leave to send', async () => {
  await expect(during(async (bmc) => {
    await time.pause(50_000);
    storeMs = 50_000;
    return bmc.bootOnceFromNetwork();
  })).rejects.toMatchObject({ code: 'bmc_busy' });
  expect(sent).toEqual([]);
});

test('a command whose intent took so long that the lease is nearly over is not sent', async () => {
  expect(await during(async (bmc) => {
    const askedAt = time.now();
    await time.pause(20_000);
    return bmc.send('off', askedAt);
  })).toMatchObject({ kind: 'not-sent' });
  expect(sent).toEqual([]);
});

test('one slow request does not look like a dead worker: the heart beats meanwhile', async () => {
  requestMs = 40_000;
  await during((bmc) => bmc.observePower());
  expect(beats).toEqual(Array(3).fill({ talksTo: '10.0.0.7' }));
});

describe('a conversation that is cancelled', () => {
  const cancelledAt = <R>(sign: string, work: (bmc: LeasedBmc) => Promise<R>): Promise<R> =>
    time.run(runActivity({ workflowId: 'node/7/run/1', temporalRunId: 'run-1', onHeartbeat: (details, cancel) => void (sign in (details as object) && cancel()) }, () => leases.withBmc(BMC, work), undefined));

  test('while it waits for the lease opens nothing, and gives the lease back', async () => {
    holder = { name: 'somebody', until: time.now() + 1000 };
    await expect(cancelledAt('waitingFor', (bmc) => bmc.bootOnceFromNetwork())).rejects.toMatchObject({ name: 'CancelledFailure' });
    expect([opened, sent, holder]).toEqual([[], [], null]);
  });
  test('and hung up on is not opened again: nothing more is asked or sent', async () => {
    requestMs = 40_000;
    await expect(cancelledAt('talksTo', async (bmc) => {
      await bmc.observePower();
      expect(await bmc.send('off', time.now())).toMatchObject({ kind: 'not-sent' });
      return bmc.bootOnceFromNetwork();
    })).rejects.toMatchObject({ name: 'CancelledFailure' });
    expect([opened, sent]).toEqual([[{ closed: true }], []]);
  });
});

test('manual nodes have no wire to keep each other off', async () => {
  const one = (): Promise<unknown> => leases.withBmc({ type: 'manual', host: '' }, async (bmc) => bmc.lease);
  holder = { name: 'somebody', until: Infinity };
  expect(await time.run(runActivity({ workflowId: 'node/7/run/1', temporalRunId: 'r' }, one, undefined))).toBeNull();
});
