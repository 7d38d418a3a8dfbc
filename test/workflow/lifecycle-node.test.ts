/** A lifecycle alone: what holds it, what ends the hold, what people may say to it; and that no error and no boundary of its histories loses anything. */
import { failure } from '../../src/domain/errors.js';
import type { LifecycleState } from '../../src/domain/states.js';
import type { OperatorVerb, VerbInput } from '../../src/contracts/messages.js';
import { changed, untilHeld, untilSeen, untilState } from '../support/lifecycle-looks.js';
import { crashes, lifecycleView, openWorkflowBench, pageOf, type Acts, type Bench, type WorkflowBench } from '../support/workflow-bench.js';
import { until } from '../support/until.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

/** Unconcerned: looked once, and waits. */
const untilIdle = (node: Bench): Promise<unknown> => until('looked', async () => node.called('lookAtDevice').length > 0);

test('a request becomes a run, its end a state, and both a status in NetBox', async () => {
  const node = workflows.node();
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  const view = await untilSeen(handle, 'the run has ended', ({ lastRun, state }) => lastRun?.end === 'done' && state === 'active');
  expect(view.lastRun).toMatchObject({ run: 1, kind: 'reprovision' });
  await until('active is written', async () => node.called('writeStatus').length === 2);
  expect(node.called('writeStatus').map(({ status }) => status)).toEqual(['staged', 'active']);
});

test('the page of a failed node says what to do about its last run', async () => {
  const node = workflows.node({ checkImage: () => ({ kind: 'bad', failure: failure('image_unreachable', { url: 'u', why: 'gone' }) }) });
  node.record = { ...node.record, state: 'planned' };
  node.asks = 'provision';
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'failed');
  await until('its page says so', async () => /^\*\*to do:\*\* check the asset server, then `retry` \(`metalflow node retry node-\d+`\)$/m.test(await pageOf(handle)));
});

test('a status that a person changed holds the lifecycle before the run is begun, and resume writes ours', async () => {
  const node = workflows.node({ writeStatus: ({ insist }, usual) => (insist ? usual() : { kind: 'conflict', failure: failure('netbox_conflict', { field: 'status', value: 'offline' }) }) });
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'held');
  expect(await untilHeld(handle, 'netbox_conflict')).toMatchObject({ state: 'held', openRun: null, lastRun: { end: 'withdrawn' } });
  expect(node.called('takeRequest')).toEqual([]);
  node.acts = {};
  await workflows.say(handle, 'resume');
  await untilSeen(handle, 'the request is judged again', ({ lastRun, state }) => lastRun?.run === 2 && lastRun.end === 'done' && state === 'active');
  expect(node.called('writeStatus').map(({ insist }) => insist)).toContain(true);
});

test('B8: `adopt` lets a status stand that a person changed, and writes no other over it', async () => {
  const node = workflows.node();
  node.asks = 'reprovision';
  node.acts.writeStatus = ({ status }, usual) => (status === null ? usual() : { kind: 'conflict', failure: failure('netbox_conflict', { field: 'status', value: 'offline' }) });
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'held');
  node.asks = null;
  const before = node.called('writeStatus').length;
  expect(await workflows.say(handle, 'adopt', { reason: 'it is off on purpose' })).toBe('adopt: accepted');
  expect(await untilState(handle, 'active')).toMatchObject({ hold: null });
  await until('the state is written', async () => node.called('writeStatus').length > before);
  expect(node.called('letNetboxStand')).toEqual([{ deviceId: node.deviceId, because: 'adopt: it is off on purpose', by: 'tester' }]);
  expect(node.called('writeStatus').slice(before).map(({ status, insist }) => [status, insist])).toEqual([[null, false]]);
});

test('B8: `adopt` makes the node what its status in NetBox says, where that says something', async () => {
  const node = workflows.node({ writeStatus: ({ status }, usual) => (status === null ? usual() : { kind: 'conflict', failure: failure('netbox_conflict', { field: 'status', value: 'failed' }) }) });
  node.acts.letNetboxStand = () => (node.record = { ...node.record, state: 'failed', previousState: null, hold: null });
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'held');
  node.asks = null;
  await workflows.say(handle, 'adopt', { reason: 'its disk is dead' });
  expect(await untilState(handle, 'failed')).toMatchObject({ hold: null });
});

test.each(['planned', 'available', 'failed'] as const)('B8: a %s node that a person sets active in NetBox is adopted, and not touched', async (state) => {
  const netboxStatus = { planned: 'planned', available: 'inventory', failed: 'failed' }[state];
  const node = workflows.node();
  node.record = { ...node.record, state, netboxStatus };
  const handle = await workflows.startLifecycle(node);
  await untilIdle(node);
  await untilState(handle, state);
  node.acts.lookAtDevice = (_input, usual) => usual().then((look) => ({ ...look, ...(look.kind === 'found' && { device: { ...look.device, status: 'active' } }) }));
  node.asks = 'provision';
  await changed(node);
  expect(await untilState(handle, 'active')).toMatchObject({ adopted: true, hold: null });
  await until('its request is refused', async () => node.called('writeJournal').length > 0);
  expect(node.called('openRun')).toEqual([]);
});

const throwsOnce = (error: () => Error): (() => void) => {
  let isFirst = true;
  return () => {
    if (!isFirst) return;
    isFirst = false;
    throw error();
  };
};
const ERRORS: readonly (readonly [where: string, acts: (error: () => Error) => Acts])[] = [
  ['looking at the device', (error) => { const fall = throwsOnce(error); return { lookAtDevice: (_input, usual) => { fall(); return usual(); } }; }],
  ['opening the run', (error) => { const fall = throwsOnce(error); return { openRun: (_input, usual) => { fall(); return usual(); } }; }],
  ['writing the status before a run', (error) => { const fall = throwsOnce(error); return { writeStatus: (_input, usual) => { fall(); return usual(); } }; }],
  ['closing the run', (error) => { const fall = throwsOnce(error); return { closeRun: (_input, usual) => { fall(); return usual(); } }; }],
];
test.each(ERRORS)('an error nobody foresaw while %s holds the lifecycle, and never fails it', async (_where, acts) => {
  const node = workflows.node(acts(() => crashes('cannot read properties of undefined')));
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await untilHeld(handle, 'unexpected');
  expect((await handle.describe()).status.name).toBe('RUNNING');
  expect(await workflows.say(handle, 'resume')).toBe('resume: accepted');
  await untilSeen(handle, 'the run is done', ({ lastRun, state, hold }) => lastRun?.run === 1 && lastRun.end === 'done' && state === 'active' && hold === null);
});

test('an error in a state that cannot be kept either does not fail it', async () => {
  const node = workflows.node({ lookAtDevice: () => { throw crashes('one'); }, keepState: () => { throw crashes('two'); } });
  const handle = await workflows.startLifecycle(node);
  await untilHeld(handle, 'unexpected');
  expect((await handle.describe()).status.name).toBe('RUNNING');
});

test('a device with a mistake is held, and goes on by itself when NetBox is fixed', async () => {
  const node = workflows.node({ lookAtDevice: () => ({ kind: 'invalid', failure: failure('device_invalid', { field: 'oob_ip', what: 'is no address' }), record: null }) });
  const handle = await workflows.startLifecycle(node);
  await untilHeld(handle, 'device_invalid');
  node.acts = {};
  await changed(node);
  await untilState(handle, 'active');
});

const INVALID = (record: Bench['record'] | null) => ({ kind: 'invalid', failure: failure('device_invalid', { field: 'system_uuid', what: 'is no UUID', name: 'rack4-node7' }), record }) as const;

test('B3: a device that is no node yet and has a mistake is told of in NetBox, and shown by its name', async () => {
  const node = workflows.node({ recallDevice: () => ({ record: null, distrust: null }), lookAtDevice: () => INVALID(null) });
  const handle = await workflows.startLifecycle(node);
  expect(await untilHeld(handle, 'device_invalid')).toMatchObject({ node: 'rack4-node7' });
  expect(node.called('tellRefusal')).toEqual([{ deviceId: node.deviceId }]);
});

test('B2: a device that ended and asks for something is told of in NetBox, and its lifecycle ends', async () => {
  const node = workflows.node();
  node.record = { ...node.record, state: 'retired' };
  node.acts = { lookAtDevice: () => INVALID(node.record) };
  await (await workflows.startLifecycle(node)).result();
  expect([node.called('tellRefusal').length, node.called('writeJournal'), node.called('keepState')]).toEqual([1, [], []]);
});

test('a node whose device has a mistake is held, and NetBox is not told of it as of a stranger', async () => {
  const node = workflows.node();
  node.acts = { lookAtDevice: () => INVALID(node.record) };
  const handle = await workflows.startLifecycle(node);
  await untilHeld(handle, 'device_invalid');
  expect(node.called('tellRefusal')).toEqual([]);
});

/** NetBox tells of the device so often, and each time it is looked at. */
async function lookedAtAgain(node: Bench, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    const before = node.called('lookAtDevice').length;
    await changed(node);
    await until('looked again', async () => node.called('lookAtDevice').length > before);
  }
}

test('B2: that a node has attested and waits is told once, however often it is looked at, and whatever else is told meanwhile', async () => {
  const node = workflows.node();
  node.record = { ...node.record, state: 'available' };
  const handle = await workflows.startLifecycle(node);
  const attests = (attestationId: string): Promise<void> => node.signal(handle.workflowId, 'attested', { bootAttempt: null, attestationId, accepted: true, reason: null });
  const told = (): unknown[] => node.called('writeJournal').map(({ text }) => text);
  await attests('a-1');
  await until('it is told', async () => told().length > 0);
  await lookedAtAgain(node, 3);
  const before = node.called('lookAtDevice').length;
  await attests('a-2');
  await until('looked again', async () => node.called('lookAtDevice').length > before);
  node.acts = { lookAtDevice: async (_input, usual) => { const looked = await usual(); return looked.kind === 'found' ? { ...looked, device: { ...looked.device, unknownAction: 'dance' } } : looked; } };
  await lookedAtAgain(node, 3);
  node.acts = {};
  await lookedAtAgain(node, 2);
  expect(told()).toEqual([expect.stringContaining('attested and waits'), expect.stringContaining('desired_action dance')]);
});

test('a store and a Temporal that do not belong together hold it until somebody adopts', async () => {
  let distrust: string | null = 'the ids differ';
  const node = workflows.node({
    recallDevice: async (_input, usual) => ({ ...(await usual()), distrust }),
    lookAtDevice: async (_input, usual) => ({ ...(await usual()), distrust }) as Awaited<ReturnType<typeof usual>>,
    adoptDevice: async (_input, usual) => {
      distrust = null;
      return usual();
    },
  });
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await untilHeld(handle, 'installation_mismatch');
  expect(await workflows.say(handle, 'resume')).toMatch(/say `adopt`/);
  expect(node.called('openRun')).toEqual([]);
  await workflows.say(handle, 'adopt');
  await untilSeen(handle, 'the request is judged', ({ lastRun }) => lastRun?.end === 'done');
});

const REFUSED: readonly (readonly [verb: OperatorVerb, input: Partial<VerbInput>, state: LifecycleState, why: RegExp])[] = [
  ['resume', {}, 'active', /not held/],
  ['cancel', {}, 'active', /no run is open/],
  ['retry', {}, 'active', /only a failed node/],
  ['retry', {}, 'failed', /only a failed node has a run to retry/],
  ['approve', {}, 'active', /nothing to approve/],
  ['approve', { attestRemoved: true }, 'maintenance', /cannot be attested removed/],
  ['adopt', {}, 'active', /not held for a mismatch, nor for a status/],
  ['maintenance', {}, 'active', /say on or off/],
  ['maintenance', { on: false }, 'active', /does not fit/],
  ['hold', {}, 'maintenance', /cannot be held here/],
  ['hold', { by: '' }, 'active', /by/],
  ['hold', { runId: 'former' }, 'active', /former/],
];
test.each(REFUSED)('%s %j of a node that is %s is refused, and says why', async (verb, input, state, why) => {
  const node = workflows.node();
  node.record = { ...node.record, state, previousState: state === 'maintenance' ? 'active' : null };
  const handle = await workflows.startLifecycle(node);
  await untilIdle(node);
  await untilState(handle, state);
  const said = await workflows.say(handle, verb, input);
  expect(said).toMatch(/^refused: verb_refused: /);
  expect(said).toMatch(why);
  expect((await lifecycleView(handle)).state).toBe(state);
});

test('retry of a failed node opens a run of the same kind, which does not look for a request', async () => {
  const node = workflows.node();
  node.record = { ...node.record, state: 'failed', lastRun: { run: 1, kind: 'reprovision', outcome: { end: 'failed', failure: failure('boot_not_seen'), destroyed: false }, at: new Date(0).toISOString() } };
  node.nextRun = 2;
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'failed');
  await workflows.say(handle, 'retry');
  expect((await untilState(handle, 'active')).lastRun).toMatchObject({ run: 2, kind: 'reprovision', end: 'done' });
  expect(node.called('takeRequest')).toEqual([]);
});

test('hold and maintenance keep a request, and their ends let it start', async () => {
  const node = workflows.node();
  const handle = await workflows.startLifecycle(node);
  await untilState(handle, 'active');
  await workflows.say(handle, 'hold', { reason: 'fan' });
  await untilHeld(handle, 'held_by_person');
  node.asks = 'reprovision';
  await changed(node);
  await untilSeen(handle, 'kept', ({ nextRequest }) => nextRequest === 'reprovision');
  await workflows.say(handle, 'maintenance', { on: true, reason: 'fan' });
  await untilState(handle, 'maintenance');
  expect(node.called('openRun')).toEqual([]);
  await workflows.say(handle, 'maintenance', { on: false });
  await untilSeen(handle, 'the kept request was done', ({ lastRun, state }) => lastRun?.end === 'done' && state === 'active');
});

test('a run that was terminated by hand is closed as failed, whatever it was doing', async () => {
  const node = workflows.node({ watchRun: () => ({ kind: 'terminated' }) });
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  const { lastRun } = await untilState(handle, 'failed');
  expect(lastRun).toMatchObject({ end: 'failed', failure: { code: 'run_terminated' } });
});

test('W1b: signals that come in the task of the continue-as-new are not lost', async () => {
  const LINKS = 400;
  let links = 0;
  // Each look calls for the next: a lost signal is a chain that stops.
  const node = workflows.node({
    lookAtDevice: async (_input, usual) => {
      if (++links < LINKS) void changed(node);
      return usual();
    },
  });
  const handle = await workflows.startLifecycle(node);
  const { runId } = await handle.describe();
  await until('the whole chain', async () => links >= LINKS, 240);
  await untilState(handle, 'active');
  expect((await handle.describe()).runId).not.toBe(runId);
});

test('W1b: a signal in the last task of a retired node starts another lifecycle, which looks', async () => {
  const node = workflows.node({
    writeJournal: async () => {
      if (node.record.state !== 'retired') return;
      // Declared again, in the moment in which the lifecycle writes its last line.
      node.record = { ...node.record, state: 'planned', previousState: null };
      node.asks = 'provision';
      await changed(node);
    },
  });
  node.asks = 'retire';
  const handle = await workflows.startLifecycle(node);
  await untilSeen(handle, 'provisioned again', ({ lastRun, state }) => lastRun?.kind === 'provision' && lastRun.end === 'done' && state === 'active');
  expect(node.called('openRun').map(({ kind }) => kind)).toEqual(['retire', 'provision']);
});
