/** Power intents are written before the wire, and one BMC has one conversation at a time. */
import type { CommandResult } from '../../src/contracts/bmc.js';
import type { FenceRef } from '../../src/contracts/store.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
let ref: FenceRef;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(async () => {
  await bench.clean();
  ref = await bench.begin();
});
afterAll(() => bench.close());

describe('an intent (W3)', () => {
  const intend = (id = 'intent-1', command = 'off') => bench.store.power.intend(ref, { id, command }, null);
  test('is the first, and then there again without an answer until one is written', async () => {
    expect(await intend()).toEqual({ kind: 'first' });
    bench.pass(10);
    expect(await intend()).toEqual({ kind: 'again', answer: null, writtenAt: '2026-11-30T12:00:00.000Z' });
    const answer: CommandResult = { kind: 'refused', code: 'bmc_refused', why: 'not ready', details: { returnValue: '2' } };
    await bench.store.power.answered('intent-1', answer);
    expect(await intend()).toMatchObject({ kind: 'again', answer });
  });
  test('of two at once is the first for one', async () => {
    expect((await Promise.all([intend(), intend()])).map((one) => one.kind).sort()).toEqual(['again', 'first']);
  });
  test('renews the lease under which its command goes out, and is not written under one that another worker has', async () => {
    const lease = { bmc: '10.0.0.7', holder: 'a', seconds: 60 };
    const intendUnder = (holder: string) => bench.store.power.intend(ref, { id: `of ${holder}`, command: 'off' }, { ...lease, holder });
    expect(await bench.store.power.lock(lease.bmc, 'a', 60)).toBe(true);
    bench.pass(50);
    expect(await intendUnder('a')).toEqual({ kind: 'first' });
    bench.pass(50);
    expect(await intendUnder('b')).toEqual({ kind: 'lease-lost' });
    bench.pass(11);
    // Nothing was written by the one that was refused: it is the first still.
    expect(await intendUnder('b')).toEqual({ kind: 'first' });
    expect(await intendUnder('a')).toEqual({ kind: 'lease-lost' });
  });
  test('of another request is one of its own', async () => {
    await intend();
    expect(await intend('intent-2')).toEqual({ kind: 'first' });
  });
});

describe('when the power last changed', () => {
  const command = async (id: string, what: string, answer: CommandResult | null): Promise<void> => {
    await bench.store.power.intend(ref, { id, command: what }, null);
    if (answer) await bench.store.power.answered(id, answer);
  };
  test('is never, before any command', async () => {
    expect(await bench.store.power.lastChangeAt('7')).toBeNull();
  });
  test.each<[string, CommandResult | null, boolean]>([
    ['was accepted', { kind: 'accepted' }, true],
    ['has no answer: it may have taken effect', null, true],
    ['was answered by nothing: it may have taken effect', { kind: 'unknown', why: 'timeout' }, true],
    ['was refused', { kind: 'refused', code: 'bmc_refused', why: 'not ready' }, false],
    ['never reached the BMC', { kind: 'not-sent', why: 'connection refused' }, false],
  ])('a command that %s counts: %#', async (_what, answer, counts) => {
    await command('before', 'on', { kind: 'accepted' });
    bench.pass(60);
    await command('after', 'off', answer);
    expect(await bench.store.power.lastChangeAt('7')).toBe(counts ? '2026-11-30T12:01:00.000Z' : '2026-11-30T12:00:00.000Z');
  });
});

describe('the lock of a BMC', () => {
  const lock = (holder: string, bmc = '10.0.0.7'): Promise<boolean> => bench.store.power.lock(bmc, holder, 60);
  test('is had by one holder, who may take it again and renew it', async () => {
    expect([await lock('a'), await lock('a'), await lock('b'), await lock('b', '10.0.0.8')]).toEqual([true, true, false, true]);
    bench.pass(50);
    expect(await lock('a')).toBe(true);
    bench.pass(50);
    expect(await lock('b')).toBe(false);
  });
  test('is a lease: a holder that died holds it no longer than its time', async () => {
    await lock('a');
    bench.pass(60);
    expect(await lock('b')).toBe(false);
    bench.pass(1);
    expect([await lock('b'), await lock('a')]).toEqual([true, false]);
  });
  test('is given back by its holder, and by nobody else', async () => {
    await lock('a');
    await bench.store.power.unlock('10.0.0.7', 'b');
    expect(await lock('b')).toBe(false);
    await bench.store.power.unlock('10.0.0.7', 'a');
    expect(await lock('b')).toBe(true);
  });
  test('that many reach for at once is had by one', async () => {
    const had = await Promise.all(['a', 'b', 'c', 'd'].map((holder) => lock(holder)));
    expect(had.filter(Boolean)).toHaveLength(1);
  });
});
