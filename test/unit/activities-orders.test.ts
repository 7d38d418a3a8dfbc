/** The activity that mirrors an order: it attaches, and is completed from outside. Against a real ledger. */
import { CompleteAsyncError } from '@temporalio/activity';
import { createOrderActivities } from '../../src/activities/orders.js';
import type { RunPlan } from '../../src/contracts/plan.js';
import type { FenceRef } from '../../src/contracts/store.js';
import { runActivity } from '../support/activity-env.js';
import { StoreBench, UUID, WIPE, type Booted } from '../support/store-bench.js';

let bench: StoreBench;
let ref: FenceRef;
let node: Booted;
let activities: ReturnType<typeof createOrderActivities>;
beforeAll(async () => {
  bench = await StoreBench.open();
  activities = createOrderActivities({ stores: bench.store });
});
beforeEach(async () => {
  await bench.clean();
  ref = await bench.begin('wipe');
  node = await bench.boot(ref);
  await bench.mail();
});
afterAll(() => bench.close());

const postOrder = (speaker = ref) =>
  runActivity(speaker, activities.postOrder, { deviceId: '7', run: ref.run, bootAttempt: node.bootAttempt, action: { title: 'wipe', action: WIPE, destructive: true, timeoutSeconds: 60 }, queueSeconds: 300, grantUnknown: null });
const awaitOrder = (orderId: string, taskToken = 'token', speaker = ref) => runActivity({ ...speaker, taskToken }, activities.awaitOrder, { deviceId: '7', run: ref.run, orderId });
const plan: RunPlan = {
  deviceId: '7', nodeName: 'node-7', run: 1, kind: 'wipe', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: true, netboots: true, nodeClass: null, payload: null, template: 'wipe', image: null,
  diskRule: {}, rootDisk: null, wipeDisks: ['S1'], actions: [{ title: 'wipe', name: 'wipe-disk', timeoutSeconds: 60 }], seed: null, allowUnproven: false, confirmBy: 'none',
};
const acceptAttestation = (extra: Partial<RunPlan> = {}) => runActivity(ref, activities.acceptAttestation, { deviceId: '7', run: ref.run, bootAttempt: node.bootAttempt, plan: { ...plan, ...extra } });

test('a retry of the waiting only attaches again, and completes by its newest token', async () => {
  const { orderId } = await postOrder();
  for (const token of ['try-1', 'try-2']) await expect(awaitOrder(orderId, token)).rejects.toBeInstanceOf(CompleteAsyncError);
  await bench.store.orderDesk.consume(node.session, orderId);
  await bench.store.orderDesk.report(node.session, orderId, { result: 'succeeded', message: '' });
  expect(await bench.mail()).toEqual([expect.objectContaining({ kind: 'complete', taskToken: Buffer.from('try-2').toString('base64') })]);
  expect(await awaitOrder(orderId)).toMatchObject({ kind: 'reported', report: { result: 'succeeded' } });
  expect((await bench.store.nodes.run('7', ref.run))?.orders).toHaveLength(1);
});

test('a retry of the posting is the same order', async () => {
  expect(await postOrder()).toEqual(await postOrder());
});

test('a former self of a reset run neither posts nor waits', async () => {
  const { orderId } = await postOrder();
  const former = ref;
  await bench.reset(ref);
  await expect(postOrder(former)).rejects.toMatchObject({ code: 'run_stale' });
  await expect(awaitOrder(orderId, 'late', former)).rejects.toMatchObject({ code: 'run_stale' });
});

test('a reset run cannot wait for an order of its former self', async () => {
  const { orderId } = await postOrder();
  await expect(awaitOrder(orderId, 'token', bench.newTemporalRun(ref))).rejects.toMatchObject({ code: 'attempt_superseded' });
});

describe('an attestation', () => {
  test('that is accepted pins the disks it reported', async () => {
    expect(await acceptAttestation()).toMatchObject({ kind: 'accepted', proof: 'tpm', disk: null, actions: [{ title: 'wipe S/N S1', action: WIPE }] });
  });
  test('whose inventory does not fit the plan is refused by name', async () => {
    expect(await acceptAttestation({ wipeDisks: ['S9'] })).toMatchObject({ kind: 'refused', failure: { code: 'disk_none_matches' } });
  });
  test('that is not there is not there, whatever a signal said', async () => {
    const { bootAttempt } = await bench.store.attempts.open(ref);
    node = { ...node, bootAttempt };
    expect(await acceptAttestation()).toEqual({ kind: 'not-there' });
  });
  test('of a former attempt is superseded', async () => {
    await bench.store.attempts.open(ref);
    await expect(acceptAttestation()).rejects.toMatchObject({ code: 'attempt_superseded' });
  });
});
