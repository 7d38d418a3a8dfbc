/** One Temporal run speaks for a run; a reset takes over and voids; anything older, and anything closed, is refused. */
import { sql } from 'kysely';
import type { FenceRef } from '../../src/contracts/store.js';
import type { RunPlan } from '../../src/contracts/plan.js';
import { MAC, StoreBench, WIPE } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

/** Every effect that a run can ask of the store. */
const EFFECTS: Readonly<Record<string, (ref: FenceRef, bootAttempt: string, orderId: string) => Promise<unknown>>> = {
  'entering the fence': (ref) => bench.store.fence.enter(ref),
  'entering a phase': (ref) => bench.store.runs.enterPhase(ref, 'arming', ''),
  'a hold': (ref) => bench.store.runs.setHold(ref, null),
  'pinning a plan': (ref) => bench.store.runs.pinPlan(ref, {} as RunPlan),
  'marking the request taken': (ref) => bench.store.runs.markTaken(ref),
  'marking the field cleared': (ref) => bench.store.runs.markCleared(ref),
  'a boot attempt': (ref) => bench.store.attempts.open(ref),
  'the adoption of an intake': (ref) => bench.store.attempts.adoptIntake(ref, 'x'),
  'reading the attestation': (ref, bootAttempt) => bench.store.attempts.attested(ref, bootAttempt),
  'reading the boot': (ref, bootAttempt) => bench.store.attempts.bootSeen(ref, bootAttempt),
  'a lease': (ref, bootAttempt) => bench.store.permissions.lease(ref, bootAttempt, 300),
  'withdrawing a lease': (ref) => bench.store.permissions.withdraw(ref),
  'an order': (ref, bootAttempt) => bench.post(ref, bootAttempt, { title: 'another' }),
  'attaching to an order': (ref, _bootAttempt, orderId) => bench.store.orders.attach(ref, orderId, 'token'),
  'resolving an order': (ref, _bootAttempt, orderId) => bench.store.orders.resolveAsDone(ref, orderId, 'ann'),
  'cancelling orders': (ref) => bench.store.orders.cancelOpen(ref, 'x'),
  'a power intent': (ref) => bench.store.power.intend(ref, { id: 'intent', command: 'off' }, null),
};
const effects = Object.keys(EFFECTS);

test('the first Temporal run takes the fence, and keeps it', async () => {
  const ref = await bench.begin();
  expect(await bench.store.fence.enter(ref)).toBe('held');
});

test('a run that the store does not know is a mismatch', async () => {
  await expect(bench.store.fence.enter({ deviceId: '7', run: 9, workflowId: 'node/7/run/9', temporalRunId: 'x' })).rejects.toMatchObject({ code: 'installation_mismatch' });
});

describe('a reset', () => {
  test('takes the fence over and voids orders, tokens, attempts and permission in one go', async () => {
    const first = await bench.begin();
    const { bootAttempt, token, session } = await bench.boot(first);
    await bench.store.permissions.lease(first, bootAttempt, 300);
    const taken = await bench.post(first, bootAttempt);
    await bench.store.orderDesk.consume(session, taken.orderId);
    const offered = await bench.post(first, bootAttempt, { title: 'second' });

    const second = bench.newTemporalRun(first);
    expect(await bench.store.fence.enter(second)).toBe('taken-over');

    for (const { orderId } of [taken, offered]) expect(await bench.store.orders.result('7', orderId)).toEqual({ kind: 'cancelled', why: 'the run was reset' });
    expect(await bench.store.orderDesk.session(token)).toBeNull();
    expect(await bench.store.orderDesk.next(session)).toBeNull();
    expect((await bench.store.boot.byMac(MAC))?.permission).toBeNull();
    await expect(bench.store.attempts.assertOpen(second, bootAttempt)).rejects.toMatchObject({ code: 'attempt_superseded' });
    expect(await bench.store.fence.enter(second)).toBe('held');
    expect((await bench.journal()).filter((text) => text.startsWith('the run was reset'))).toHaveLength(1);
  });

  test('that cannot be journalled takes nothing over: all of it or none', async () => {
    const first = await bench.begin();
    const { bootAttempt, token } = await bench.boot(first);
    const { orderId } = await bench.post(first, bootAttempt);
    await sql`create trigger full before insert on journal when new.kind = 'fence' begin select raise(abort, 'disk full'); end`.execute(bench.db);
    await expect(bench.store.fence.enter(bench.newTemporalRun(first))).rejects.toThrow('disk full');
    await sql`drop trigger full`.execute(bench.db);
    expect(await bench.store.orders.result('7', orderId)).toBeNull();
    expect(await bench.store.orderDesk.session(token)).not.toBeNull();
    await bench.store.attempts.assertOpen(first, bootAttempt);
  });

  test('tells the agent to stop, at its next progress', async () => {
    const first = await bench.begin();
    const { bootAttempt, session } = await bench.boot(first);
    const { orderId } = await bench.post(first, bootAttempt);
    await bench.store.orderDesk.consume(session, orderId);
    expect(await bench.store.orderDesk.progress(session, orderId, { done: 1, total: 2, unit: 'bytes' })).toBe('on');
    await bench.reset(first);
    expect(await bench.store.orderDesk.progress(session, orderId, { done: 2, total: 2, unit: 'bytes' })).toBe('stop');
  });

  test('completes no activity of the former run', async () => {
    const first = await bench.begin();
    const { bootAttempt, session } = await bench.boot(first);
    const { orderId } = await bench.post(first, bootAttempt);
    await bench.store.orders.attach(first, orderId, 'token-of-the-former');
    await bench.store.orderDesk.consume(session, orderId);
    await bench.reset(first);
    await bench.store.orderDesk.report(session, orderId, { result: 'succeeded', message: '' });
    expect((await bench.mail()).filter((message) => message.kind === 'complete')).toEqual([]);
  });

  test('is believed only when Temporal says that it is the present run', async () => {
    const first = await bench.begin();
    const second = { ...first, temporalRunId: 'somebody-else' };
    for (const look of [{ kind: 'running', runId: 'a-third' }, { kind: 'closed', runId: 'somebody-else', how: 'terminated' }, { kind: 'absent' }] as const) {
      bench.looks.set(first.workflowId, look);
      await expect(bench.store.fence.enter(second)).rejects.toMatchObject({ code: 'run_stale' });
    }
    expect(await bench.store.fence.enter(first)).toBe('held');
  });

  test('waits for Temporal: while it does not answer, the fence stays where it is', async () => {
    const first = await bench.begin();
    const second = bench.newTemporalRun(first);
    bench.unavailable = true;
    await expect(bench.store.fence.enter(second)).rejects.toThrow('does not answer');
    // The holder needs no Temporal.
    expect(await bench.store.fence.enter(first)).toBe('held');
  });

  test('two at once: one takes over, the other finds it held or is stale', async () => {
    const first = await bench.begin();
    const second = bench.newTemporalRun(first);
    const entries = await Promise.all([bench.store.fence.enter(second), bench.store.fence.enter(second)]);
    expect(entries.sort()).toEqual(['held', 'taken-over']);
  });
});

describe('an older Temporal run is refused as stale', () => {
  test.each(effects)('%s', async (effect) => {
    const first = await bench.begin();
    const { bootAttempt } = await bench.boot(first);
    const { orderId } = await bench.post(first, bootAttempt);
    await bench.reset(first);
    await expect(EFFECTS[effect]!(first, bootAttempt, orderId)).rejects.toMatchObject({ code: 'run_stale' });
  });
});

describe('a closed run refuses every effect', () => {
  test.each(effects)('%s', async (effect) => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.boot(ref);
    const { orderId } = await bench.post(ref, bootAttempt);
    await bench.store.runs.close('7', ref.run, { end: 'failed', failure: null, destroyed: false }, ref);
    await expect(EFFECTS[effect]!(ref, bootAttempt, orderId)).rejects.toMatchObject({ code: 'run_closed' });
  });

  test('and a reset of it too, whatever Temporal says', async () => {
    const ref = await bench.begin();
    await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: false }, ref);
    await expect(bench.store.fence.enter(bench.newTemporalRun(ref))).rejects.toMatchObject({ code: 'run_closed' });
  });
});

describe('a boot attempt', () => {
  test('of an intake that is adopted twice is one that is open', async () => {
    await bench.attest();
    const { attestationId } = (await bench.store.nodes.evidence('7'))[0]!;
    const ref = await bench.begin();
    const [first, second] = [await bench.store.attempts.adoptIntake(ref, attestationId), await bench.store.attempts.adoptIntake(ref, attestationId)];
    expect([first.number, second.number]).toEqual([1, 2]);
    await expect(bench.store.attempts.assertOpen(ref, first.bootAttempt)).rejects.toMatchObject({ code: 'attempt_superseded' });
    expect((await bench.store.attestation.findNode(MAC))?.attempt).toMatchObject({ bootAttempt: second.bootAttempt });
  });
  test('of an intake is not taken over again by a reset run: an order it gave there may have been carried out', async () => {
    await bench.attest();
    const { attestationId } = (await bench.store.nodes.evidence('7'))[0]!;
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.adoptIntake(ref, attestationId);
    const reset = bench.newTemporalRun(ref);
    await bench.store.fence.enter(reset);
    await expect(bench.store.attempts.adoptIntake(reset, attestationId)).rejects.toMatchObject({ code: 'attempt_superseded' });
    await expect(bench.store.attempts.assertOpen(reset, bootAttempt)).rejects.toMatchObject({ code: 'attempt_superseded' });
    expect(await bench.store.attempts.open(reset)).toMatchObject({ number: 2 });
  });
  test('of another fence, another run or another device is none of this run', async () => {
    await bench.declare({ id: '8', name: 'node-8', macs: ['02:00:00:00:00:08'] });
    const [ours, theirs] = [await bench.begin(), await bench.begin('provision', '8')];
    const { bootAttempt } = await bench.store.attempts.open(theirs);
    await expect(bench.store.permissions.lease(ours, bootAttempt, 300)).rejects.toMatchObject({ code: 'attempt_superseded' });
    await expect(bench.store.permissions.lease(ours, 'never-drawn', 300)).rejects.toMatchObject({ code: 'attempt_superseded' });
  });
  test('closes the former one and revokes its token', async () => {
    const ref = await bench.begin();
    const first = await bench.boot(ref);
    expect(await bench.store.attempts.open(ref)).toMatchObject({ number: 2 });
    expect(await bench.store.orderDesk.session(first.token)).toBeNull();
    await expect(bench.store.attempts.assertOpen(ref, first.bootAttempt)).rejects.toMatchObject({ code: 'attempt_superseded' });
  });
});

describe('a permission', () => {
  test('is a lease, and renewing it moves its end', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    for (const seconds of [300, 600]) {
      await bench.store.permissions.lease(ref, bootAttempt, seconds);
      expect((await bench.store.boot.byMac(MAC))?.permission).toEqual({ run: ref.run, bootAttempt, expiresAt: new Date(bench.now().getTime() + seconds * 1000).toISOString() });
    }
    await bench.store.permissions.withdraw(ref);
    expect((await bench.store.boot.byMac(MAC))?.permission).toBeNull();
  });
  test('that was withdrawn is not leased again for the same boot: a renewal that came late would arm the node', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    await bench.store.permissions.lease(ref, bootAttempt, 300);
    await bench.store.permissions.withdraw(ref);
    await expect(bench.store.permissions.lease(ref, bootAttempt, 300)).rejects.toMatchObject({ code: 'attempt_superseded' });
  });
  test('of a run that is not the open one is none', async () => {
    const ref = await bench.begin();
    await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: false }, ref);
    // A row that outlived its run, as from a backup.
    await bench.db.insertInto('permission').values({ device_id: '7', run: ref.run, boot_attempt: 'old', expires_at: '2999-01-01T00:00:00.000Z' }).execute();
    expect((await bench.store.boot.byMac(MAC))?.permission).toBeNull();
    await bench.begin('reprovision');
    expect((await bench.store.boot.byMac(MAC))?.permission).toBeNull();
    expect(await bench.store.devices.withOpenWork()).toEqual(['7']);
  });
});

test('an order of another device is not there for this one', async () => {
  await bench.declare({ id: '8', name: 'node-8', macs: ['02:00:00:00:00:08'] });
  const ours = await bench.begin();
  const { bootAttempt, session } = await bench.boot(ours);
  const { orderId } = await bench.post(ours, bootAttempt);
  const stranger = { ...session, deviceId: '8' };
  for (const act of [bench.store.orderDesk.consume(stranger, orderId), bench.store.orderDesk.progress(stranger, orderId, { done: 0, total: 0, unit: '' }), bench.store.orderDesk.report(stranger, orderId, { result: 'failed', message: '' })]) {
    await expect(act).rejects.toMatchObject({ code: 'order_not_found' });
  }
  expect(await bench.store.orders.result('8', orderId)).toBeNull();
  expect((await bench.store.orderDesk.next(session))?.action).toEqual(WIPE);
});
