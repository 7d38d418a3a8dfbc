/** How a lifecycle settles the ends of its runs: what the node is afterwards, and what becomes of the request. */
import type { WorkflowHandle } from '@temporalio/client';
import { failure } from '../../src/domain/errors.js';
import type { RunKind } from '../../src/domain/runs.js';
import type { LifecycleState } from '../../src/domain/states.js';
import { changed, untilHeld, untilSeen, untilState } from '../support/lifecycle-looks.js';
import { until } from '../support/until.js';
import { openWorkflowBench, type Acts, type Bench, type WorkflowBench } from '../support/workflow-bench.js';

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
