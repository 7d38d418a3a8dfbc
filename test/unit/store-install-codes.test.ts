/** Install codes: by which an installed system proves that this run installed it. */
import { failure } from '../../src/domain/errors.js';
import type { Redemption } from '../../src/contracts/agent-desk.js';
import type { AgentAction } from '../../src/contracts/order.js';
import type { FenceRef } from '../../src/contracts/store.js';
import { StoreBench, UUID } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const WRITE_SEED: AgentAction = { name: 'write-seed', disk: { serial: 'S1' }, place: 'efi' };

describe('an install code', () => {
  let ref: FenceRef;
  let code: string;
  beforeEach(async () => {
    ref = await bench.begin();
    code = (await bench.boot(ref)).installCode!;
    await bench.mail();
  });
  const seen = (sender = '10.0.1.7'): Promise<Redemption> => bench.store.seeds.seen({ code, systemUuid: UUID, sender });
  const signal = (how: string) => ({ kind: 'signal-run', workflowId: ref.workflowId, name: 'systemSeen', payload: { run: ref.run, how } });

  test('is redeemed once, and again by the same machine from the same address; the run hears of it once', async () => {
    expect(await bench.redeem(code)).toEqual({ kind: 'redeemed', deviceId: '7', nodeName: 'node-7', run: ref.run, systemUuid: UUID, first: true });
    bench.pass(900);
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed', first: false });
    expect(await bench.mail()).toEqual([signal('seed-fetched')]);
  });
  test.each<[string, string, string, Redemption['kind']]>([
    ['from another address', '10.0.1.8', UUID, 'spent'],
    ['for another UUID', '10.0.1.7', UUID.replace('4c4c', '5d5d'), 'unknown'],
  ])('used again %s', async (_how, sender, uuid, kind) => {
    await bench.redeem(code);
    expect(await bench.redeem(code, sender, uuid)).toEqual({ kind });
  });
  test('is spent when its window is over', async () => {
    await bench.redeem(code);
    bench.pass(900.001);
    expect(await bench.redeem(code)).toEqual({ kind: 'spent' });
  });
  test.each(['rebooting', 'confirming'] as const)('has its hour from when the installed system may come: %s', async (phase) => {
    bench.pass(3000);
    await bench.store.runs.enterPhase(ref, phase, '');
    bench.pass(3600);
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed' });
  });
  test('is good for another hour when a person has the run wait again', async () => {
    await bench.store.runs.enterPhase(ref, 'confirming', '');
    await bench.store.runs.setHold(ref, failure('seed_not_fetched', { minutes: 30 }));
    bench.pass(7200);
    expect(await bench.redeem(code)).toEqual({ kind: 'spent' });
    await bench.store.runs.setHold(ref, null);
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed' });
  });
  test('that is written on the disk stays good when the node boots and attests again: its seed is not written a second time', async () => {
    const first = await bench.boot(ref);
    const { orderId } = await bench.post(ref, first.bootAttempt, { title: 'seed', action: WRITE_SEED, destructive: false });
    await bench.store.orderDesk.consume(first.session, orderId);
    const second = await bench.boot(ref);
    expect(await bench.redeem(code)).toEqual({ kind: 'unknown' });
    expect(await bench.redeem(first.installCode!)).toMatchObject({ kind: 'redeemed' });
    // One system came: the other code is nobody's.
    expect(await bench.redeem(second.installCode!)).toEqual({ kind: 'unknown' });
  });
  test('that was never used is spent after its hour', async () => {
    bench.pass(3600);
    await expect(bench.redeem(code)).resolves.toMatchObject({ kind: 'redeemed' });
    await bench.clean();
    code = (await bench.boot(await bench.begin())).installCode!;
    bench.pass(3600.001);
    expect(await bench.redeem(code)).toEqual({ kind: 'spent' });
    expect(await bench.mail()).not.toContainEqual(expect.objectContaining({ name: 'systemSeen' }));
  });
  test('of another machine is as unknown as a wrong one, and stays good for its own', async () => {
    expect(await bench.redeem(code, '10.0.1.7', UUID.replace('4c4c', '5d5d'))).toEqual({ kind: 'unknown' });
    expect(await bench.redeem(`${code}x`)).toEqual({ kind: 'unknown' });
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed', first: true });
  });
  test('redeemed by two at once is first for one', async () => {
    const both = await Promise.all([bench.redeem(code), bench.redeem(code, '10.0.1.8')]);
    expect(both.map((one) => one.kind).sort()).toEqual(['redeemed', 'spent']);
  });
  test.each(['failed', 'cancelled', 'withdrawn'] as const)('is revoked when the run ends %s', async (end) => {
    await bench.store.runs.close('7', ref.run, { end, failure: null, destroyed: false }, ref);
    expect(await bench.redeem(code)).toEqual({ kind: 'unknown' });
  });
  test('lives on when the run ends well: the installed system may ask again', async () => {
    await bench.redeem(code);
    await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: false }, ref);
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed', first: false });
  });
  test('lives on when the run is reset, until the node attests anew', async () => {
    ref = await bench.reset(ref);
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed' });
    await bench.boot(ref);
    expect(await bench.redeem(code)).toEqual({ kind: 'unknown' });
  });
  test('phoning home after the seed was fetched is told too, once', async () => {
    await bench.redeem(code);
    for (let calls = 0; calls < 2; calls++) expect(await seen()).toMatchObject({ kind: 'redeemed', first: false });
    expect(await bench.mail()).toEqual([signal('seed-fetched'), signal('phone-home')]);
  });
  test('phoning home first uses the code, and the seed may be fetched afterwards', async () => {
    expect(await seen()).toMatchObject({ kind: 'redeemed', first: true });
    expect(await bench.redeem(code)).toMatchObject({ kind: 'redeemed', first: false });
    expect((await bench.mail())[0]).toEqual(signal('phone-home'));
    bench.pass(901);
    expect(await seen()).toEqual({ kind: 'spent' });
  });
});
