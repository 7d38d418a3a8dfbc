/** How a lifecycle settles the ends of its runs: what the node is afterwards, and what becomes of the request. */
import type { WorkflowHandle } from '@temporalio/client';
import { failure } from '../../src/domain/errors.js';
import type { RunKind } from '../../src/domain/runs.js';
import type { LifecycleState } from '../../src/domain/states.js';
import { runWorkflowId, type WatchedEnd } from '../../src/contracts/messages.js';
import { changed, untilHeld, untilSeen, untilState } from '../support/lifecycle-looks.js';
import { until } from '../support/until.js';
import { endless, openWorkflowBench, runView, type Acts, type Bench, type WorkflowBench } from '../support/workflow-bench.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

const AT = new Date(0).toISOString();
/** The node never boots: its runs wait, and nothing was destroyed. */
const NEVER_BOOTS: Acts = { openBootAttempt: () => ({ bootAttempt: 'attempt-1', number: 1 }), confirmBootSeen: () => false };
const CONFLICT: Acts = { writeStatus: () => ({ kind: 'conflict', failure: failure('netbox_conflict', { field: 'status', value: 'offline' }) }) };

const ended = (handle: WorkflowHandle, run: number): Promise<unknown> => untilSeen(handle, `run ${run} has ended`, ({ lastRun, openRun }) => lastRun?.run === run && openRun === null);
async function ask(node: Bench, request: RunKind | null): Promise<void> {
  node.asks = request;
  await changed(node);
}
const opened = (handle: WorkflowHandle, run: number): Promise<unknown> => untilSeen(handle, `run ${run} is open`, ({ openRun }) => openRun?.run === run);
const taken = (node: Bench, handle: WorkflowHandle, run: number): Promise<unknown> => untilSeen(handle, `run ${run} took its request`, ({ openRun }) => openRun?.run === run && node.called('takeRequest').some((input) => input['run'] === run));

describe('a run that ended before it destroyed anything leaves the node what it was', () => {
  test('A1: a reprovision that is cancelled, of a node that metalflow provisioned', async () => {
    const node = workflows.node();
    node.record = { ...node.record, state: 'planned' };
    node.asks = 'provision';
    const handle = await workflows.startLifecycle(node);
    await untilState(handle, 'active');
    node.acts = NEVER_BOOTS;
    await ask(node, 'reprovision');
    await taken(node, handle, 2);
    await workflows.say(handle, 'cancel');
    await ended(handle, 2);
    expect(await untilState(handle, 'active')).toMatchObject({ hold: null, lastRun: { end: 'cancelled' } });
  });

  test('A1: a retry that is cancelled, of a provision that failed', async () => {
    const node = workflows.node({ checkImage: () => ({ kind: 'bad', failure: failure('image_unreachable') }) });
    node.record = { ...node.record, state: 'planned' };
    node.asks = 'provision';
    const handle = await workflows.startLifecycle(node);
    await untilState(handle, 'failed');
    node.acts = NEVER_BOOTS;
    await workflows.say(handle, 'retry');
    await opened(handle, 2);
    await workflows.say(handle, 'cancel');
    await ended(handle, 2);
    expect(await untilState(handle, 'failed')).toMatchObject({ hold: null, lastRun: { end: 'cancelled' } });
  });

  test('A1: a reprovision that a status changed by a person kept from being begun', async () => {
    const node = workflows.node();
    node.record = { ...node.record, state: 'planned' };
    node.asks = 'provision';
    const handle = await workflows.startLifecycle(node);
    await untilSeen(handle, 'active is written', () => node.record.netboxStatus === 'active');
    node.acts = CONFLICT;
    await ask(node, 'reprovision');
    expect(await untilState(handle, 'held')).toMatchObject({ hold: { code: 'netbox_conflict' }, lastRun: { run: 2, end: 'withdrawn' } });
    await until('the store has what it goes back to', () => node.record.state === 'held' && node.record.previousState === 'active');
  });
});

describe('a node in the state of a run, whose end stands in the store', () => {
  const CANCELLED = { run: 1, kind: 'provision', outcome: { end: 'cancelled', failure: failure('run_cancelled', { by: 'anna' }), destroyed: false }, at: AT } as const;
  const wedged = (node: Bench): void => void (node.record = { ...node.record, state: 'provisioning', previousState: null, openRun: null, lastRun: CANCELLED });

  test('A1: and whose former state nobody knows, reads failed when a lifecycle takes it up', async () => {
    const node = workflows.node();
    wedged(node);
    const handle = await workflows.startLifecycle(node);
    expect(await untilState(handle, 'failed')).toMatchObject({ hold: null, openRun: null, lastRun: { run: 1, end: 'cancelled' } });
  });

  test('A1: is settled by `resume` when an error held it', async () => {
    const node = workflows.node();
    wedged(node);
    node.record = { ...node.record, lastRun: null, hold: failure('unexpected', { what: 'IllegalTransition' }) };
    const handle = await workflows.startLifecycle(node);
    await untilHeld(handle, 'unexpected');
    node.record = { ...node.record, lastRun: CANCELLED };
    await workflows.say(handle, 'resume');
    expect(await untilState(handle, 'failed')).toMatchObject({ hold: null, openRun: null });
  });

  test.each<[LifecycleState]>([['provisioning'], ['wiping'], ['retiring']])('%s: an end that says nothing is an end all the same', async (state) => {
    const node = workflows.node();
    node.record = { ...node.record, state, previousState: 'active', openRun: null, lastRun: { ...CANCELLED, outcome: { end: 'run-closed', failure: null, destroyed: false } } };
    const handle = await workflows.startLifecycle(node);
    await untilState(handle, 'failed');
    expect(node.called('closeRun')).toHaveLength(1);
  });
});

/** A wait that the test ends. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => void (open = resolve));
  return { opened, open: () => open() };
}
/** Looked at the device since this was called, and was through with it. */
async function looked(node: Bench): Promise<void> {
  const before = node.called('lookAtDevice').length;
  await changed(node);
  await until('a look', async () => node.called('lookAtDevice').length > before);
}

describe('the request of a run that has ended', () => {
  test('A2: asked again after the run took it, it was meant for that run, and starts no other', async () => {
    const wipe = gate();
    const node = workflows.node({ awaitOrder: async ({ orderId }, usual) => { if (orderId.startsWith('wipe')) await wipe.opened; return usual(); } });
    const handle = (node.asks = 'reprovision', await workflows.startLifecycle(node));
    await until('the wipe', async () => node.called('awaitOrder').length > 0);
    await ask(node, 'reprovision');
    await looked(node);
    wipe.open();
    await untilSeen(handle, 'active is written', () => node.record.netboxStatus === 'active');
    expect(node.asks).toBeNull();
    await looked(node);
    expect(await untilState(handle, 'active')).toMatchObject({ lastRun: { run: 1, end: 'done' }, nextRequest: null });
    expect(node.called('openRun')).toHaveLength(1);
    expect(node.called('writeStatus').map(({ ended: of }) => of)).toEqual([null, { run: 1, kind: 'reprovision' }]);
  });

  test('A2: another request stays, and is judged when the run has ended', async () => {
    const node = workflows.node({ takeRequest: (_input, usual) => (node.asks === 'reprovision' ? usual().finally(() => void (node.asks = 'wipe')) : usual()) });
    node.asks = 'reprovision';
    const handle = await workflows.startLifecycle(node);
    await untilSeen(handle, 'wiped', ({ state, lastRun }) => state === 'available' && lastRun?.kind === 'wipe');
    expect(node.called('openRun').map(({ kind }) => kind)).toEqual(['reprovision', 'wipe']);
  });

  test('A2: set again after it was withdrawn, it starts a run', async () => {
    let tries = 0;
    const node = workflows.node({ takeRequest: (_input, usual) => (++tries === 1 ? { kind: 'withdrawn', found: 'nothing' } : usual()) });
    node.asks = 'reprovision';
    const handle = await workflows.startLifecycle(node);
    await untilSeen(handle, 'done', ({ state, lastRun }) => state === 'active' && lastRun?.run === 2 && lastRun.end === 'done');
    expect(node.called('openRun')).toHaveLength(2);
  });

  test('A2: a lifecycle that takes up an end which NetBox was never told takes the request with it', async () => {
    const node = workflows.node();
    node.asks = 'reprovision';
    node.record = { ...node.record, netboxStatus: 'staged', lastRun: { run: 1, kind: 'reprovision', outcome: { end: 'done', failure: null, destroyed: true }, at: AT } };
    const handle = await workflows.startLifecycle(node);
    await untilSeen(handle, 'active is written', () => node.record.netboxStatus === 'active');
    await looked(node);
    await untilState(handle, 'active');
    expect([node.asks, node.called('openRun')]).toEqual([null, []]);
  });

  test('B5: terminated before it took its request, the run has failed, and the request starts no other', async () => {
    const node = workflows.node({ planRun: endless });
    node.asks = 'reprovision';
    const handle = await workflows.startLifecycle(node);
    await until('planning', async () => node.called('planRun').length > 0);
    node.acts = { ...node.acts, watchRun: () => ({ kind: 'terminated' }) };
    await workflows.client.workflow.getHandle(runWorkflowId(node.deviceId, 1)).terminate('by hand');
    await untilSeen(handle, 'failed is written', () => node.record.netboxStatus === 'failed');
    await looked(node);
    expect(await untilState(handle, 'failed')).toMatchObject({ openRun: null, lastRun: { run: 1, failure: { code: 'run_terminated' } } });
    expect([node.asks, node.called('openRun').length]).toEqual([null, 1]);
  });
});

test('A10: the late end of a run that is followed no more does not end the one that is open', async () => {
  const stray = gate();
  const OURS = { run: 7, kind: 'reprovision' } as const;
  const node = workflows.node({ planRun: endless });
  const ourEnd = gate();
  node.acts.watchRun = async ({ workflowId }): Promise<WatchedEnd> => {
    await (workflowId === runWorkflowId(node.deviceId, 1) ? stray : ourEnd).opened;
    return workflowId === runWorkflowId(node.deviceId, 1) ? { kind: 'terminated' } : { kind: 'ended', outcome: { end: 'done', failure: null, destroyed: true } };
  };
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await until('run 1 is followed', async () => node.called('watchRun').length === 1);
  // Another store, which knows another run.
  node.record = { ...node.record, state: 'provisioning', previousState: 'active', openRun: { ...OURS, workflowId: runWorkflowId(node.deviceId, OURS.run) } };
  node.acts.lookAtDevice = async (_input, usual) => ({ ...(await usual()), distrust: 'the ids differ' }) as Awaited<ReturnType<typeof usual>>;
  await changed(node);
  await untilHeld(handle, 'installation_mismatch');
  delete node.acts.lookAtDevice;
  await workflows.say(handle, 'adopt');
  await until('run 7 is followed', async () => node.called('watchRun').length === 2);
  stray.open();
  await looked(node);
  await looked(node);
  expect(await untilSeen(handle, 'run 7 is open', ({ openRun }) => openRun?.run === OURS.run)).toMatchObject({ state: 'provisioning' });
  expect(node.called('closeRun')).toEqual([]);
  ourEnd.open();
  await untilSeen(handle, 'run 7 is done', ({ lastRun, state }) => lastRun?.run === OURS.run && lastRun.end === 'done' && state === 'active');
});

describe('retire, asked while a run is open', () => {
  /** A run in the middle of its wipe. */
  async function wiping(): Promise<{ node: Bench; handle: WorkflowHandle; run: WorkflowHandle; goOn: () => void }> {
    const wipe = gate();
    const node = workflows.node({ awaitOrder: async ({ orderId }, usual) => { if (orderId.startsWith('wipe')) await wipe.opened; return usual(); } });
    node.asks = 'reprovision';
    const handle = await workflows.startLifecycle(node);
    await until('the wipe', async () => node.called('awaitOrder').length > 0);
    return { node, handle, run: workflows.client.workflow.getHandle(runWorkflowId(node.deviceId, 1)), goOn: wipe.open };
  }
  const untilStop = (run: WorkflowHandle, asked: string | null): Promise<unknown> => until(`a stop asked by ${asked}`, async () => (await runView(run)).stopAsked === asked);

  test.each([['the field was emptied', null], ['the run is asked for again', 'reprovision'], ['something else is asked', 'wipe']] as const)('B4: and taken back before the safe point (%s), stops nothing', async (_how, instead) => {
    const { node, handle, run, goOn } = await wiping();
    await ask(node, 'retire');
    await untilStop(run, 'NetBox for retire');
    await ask(node, instead);
    await untilStop(run, null);
    node.asks = null;
    goOn();
    await ended(handle, 1);
    expect(await untilState(handle, 'active')).toMatchObject({ lastRun: { end: 'done' } });
  });

  test('B4: taken back and asked again, stops the run', async () => {
    const { node, handle, run, goOn } = await wiping();
    await ask(node, 'retire');
    await untilStop(run, 'NetBox for retire');
    await ask(node, null);
    await untilStop(run, null);
    await ask(node, 'retire');
    await untilStop(run, 'NetBox for retire');
    goOn();
    await untilState(handle, 'retired');
    expect(node.called('openRun').map(({ kind }) => kind)).toEqual(['reprovision', 'retire']);
  });

  test("B4: what a person's cancel stops, an empty field does not set going again", async () => {
    const { node, handle, run, goOn } = await wiping();
    await ask(node, 'retire');
    await untilStop(run, 'NetBox for retire');
    await workflows.say(handle, 'cancel');
    await untilStop(run, 'tester');
    await ask(node, null);
    await untilSeen(handle, 'nothing is asked', ({ nextRequest }) => nextRequest === null);
    await looked(node);
    goOn();
    await ended(handle, 1);
    expect(node.record.lastRun?.outcome).toMatchObject({ end: 'cancelled', failure: { message: 'cancelled by tester' } });
  });
});
