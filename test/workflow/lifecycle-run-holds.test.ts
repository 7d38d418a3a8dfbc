/** A run that is held: why, what ends the hold and what does not, and what a person may say to a run at all. */
import type { WorkflowHandle } from '@temporalio/client';
import { failure, type ErrorCode } from '../../src/domain/errors.js';
import { runWorkflowId, type OperatorVerb, type VerbInput } from '../../src/contracts/messages.js';
import { crashes, endless, fails, openWorkflowBench, runView, untilHeld, type Acts, type ActivityName, type Bench, type WorkflowBench } from '../support/workflow-bench.js';
import { until } from '../support/until.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

/** The first `times` calls answer so, or throw it; the rest do the usual. */
function first<N extends ActivityName>(name: N, answer: object | (() => never), times = 1): Acts {
  let calls = 0;
  return { [name]: (_input: never, usual: () => Promise<unknown>) => (calls++ < times ? (typeof answer === 'function' ? (answer as () => never)() : answer) : usual()) };
}
/** An activity that waits for the test. */
function gate<T>(): { readonly passed: Promise<T>; open(value: T): void } {
  let open!: (value: T) => void;
  const passed = new Promise<T>((resolve) => (open = resolve));
  return { passed, open };
}
const SUCCEEDED = { kind: 'reported', report: { result: 'succeeded', message: '' } } as const;
const stillOn = { kind: 'not-reached', power: 'on', answer: 'accepted', failure: failure('bmc_still_on', { power: 'on' }) };
const notSent = { kind: 'not-reached', power: 'settling', answer: 'not-sent', failure: failure('bmc_not_sent', { command: 'power off', address: 'a', why: 'w' }) };
const another = { kind: 'differs', found: 'x', failure: failure('bmc_is_another_machine', { found: 'x', expected: 'y' }) };
const unreadable = { kind: 'differs', found: '', failure: failure('bmc_uuid_unreadable') };
const ofWipe = (answer: object): Acts => ({ awaitOrder: ({ orderId }, usual) => (orderId === 'wipe-1' ? (answer as never) : usual()) });

type Said = readonly [verb: OperatorVerb, input?: Partial<VerbInput>];
interface Row {
  readonly what: string;
  readonly acts: Acts;
  readonly code: ErrorCode;
  /** Each is refused, for a reason that reads so. */
  readonly refused: readonly (readonly [...Said, RegExp])[];
  readonly ends: Said;
  readonly then: string;
}
const HOLDS: readonly Row[] = [
  { what: 'asked off twice, and still on', acts: { ...first('changePower', stillOn, 2), waitForPower: endless }, code: 'bmc_still_on', refused: [['retry', {}, /ended by resume/], ['approve', {}, /ended by resume/]], ends: ['resume'], then: 'done' },
  { what: 'a power command twice not sent', acts: { ...first('changePower', notSent, 2), waitForPower: endless }, code: 'bmc_not_sent', refused: [], ends: ['resume'], then: 'done' },
  { what: 'the BMC refuses', acts: first('bootOnceFromNetwork', { kind: 'refused', failure: failure('bmc_refused', { step: 's', value: '2', meaning: 'm' }) }), code: 'bmc_refused', refused: [['retry', {}, /ended by resume/]], ends: ['resume'], then: 'done' },
  { what: 'the BMC is another machine', acts: first('checkMachine', another), code: 'bmc_is_another_machine', refused: [['approve', {}, /ended by resume/]], ends: ['resume'], then: 'done' },
  { what: 'the BMC does not say which machine it is', acts: first('checkMachine', unreadable), code: 'bmc_uuid_unreadable', refused: [['resume', {}, /ended by approve/]], ends: ['approve', { reason: 'looked at the label' }], then: 'done' },
  { what: 'an order taken and never reported, granted again', acts: ofWipe({ kind: 'unknown', since: 's' }), code: 'outcome_unknown', refused: [['resume', {}, /resume --done/], ['approve', {}, /ended by/]], ends: ['retry'], then: 'done' },
  { what: 'an order taken and never reported, said to be done', acts: ofWipe({ kind: 'unknown', since: 's' }), code: 'outcome_unknown', refused: [], ends: ['resume', { done: true }], then: 'done' },
  { what: 'an activity with a bug', acts: first('planRun', () => { throw crashes('cannot read properties of undefined'); }), code: 'unexpected', refused: [['approve', {}, /ended by resume/]], ends: ['resume'], then: 'done' },
  { what: 'an activity with a bug in the middle of a boot', acts: first('leasePermission', () => { throw crashes('boom'); }), code: 'unexpected', refused: [], ends: ['resume'], then: 'done' },
  { what: 'a device with a mistake, cancelled', acts: first('planRun', { kind: 'refused', failure: failure('device_invalid', { field: 'system_uuid', what: 'is empty' }) }), code: 'device_invalid', refused: [['retry', {}, /ended by resume/]], ends: ['cancel'], then: 'cancelled' },
];
test.each(HOLDS)('$what: held, and ended by its verb', async ({ acts, code, refused, ends: [verb, input], then }) => {
  const node = workflows.node(acts);
  const handle = await workflows.startRun(node);
  await untilHeld(handle, code);
  for (const [other, with_, why] of refused) expect(await workflows.say(handle, other, with_)).toMatch(why);
  expect((await runView(handle)).hold?.code).toBe(code);
  expect(await workflows.say(handle, verb, input)).not.toMatch(/refused/);
  expect((await workflows.endOf(handle)).end).toBe(then);
  expect(node.called('noteHold').map(({ hold }) => (hold as { code: string } | null)?.code ?? null)).toEqual([code, null]);
});

test('a power command that was not sent once is asked for again with an intent of its own, and nobody is asked', async () => {
  const node = workflows.node(first('changePower', notSent));
  expect((await workflows.endOf(await workflows.startRun(node))).end).toBe('done');
  const asked = node.called('changePower');
  expect(asked.map(({ command }) => command)).toEqual(['off', 'off', 'on']);
  expect(new Set(asked.map(({ intent }) => intent)).size).toBe(3);
  expect(node.called('noteHold')).toEqual([]);
});

interface OwnEnd {
  readonly what: string;
  readonly acts: () => { readonly acts: Acts; readonly come: (node: Bench) => Promise<unknown> };
  readonly code: ErrorCode;
}
const BY_THEMSELVES: readonly OwnEnd[] = [
  { what: 'power that a person switched', code: 'bmc_still_on', acts: () => { const { passed, open } = gate<'off'>(); return { acts: { ...first('changePower', stillOn, 2), waitForPower: () => passed }, come: async () => open('off') }; } },
  { what: 'a device that was fixed in NetBox', code: 'device_invalid', acts: () => ({ acts: first('planRun', { kind: 'refused', failure: failure('device_invalid', { field: 'system_uuid', what: 'is empty' }) }), come: (node) => node.signal(runWorkflowId(node.deviceId, 1), 'deviceChanged', { source: 'webhook' }) }) },
  { what: 'a report that came late', code: 'outcome_unknown', acts: () => ({ acts: { ...ofWipe({ kind: 'unknown', since: 's' }), orderResult: () => SUCCEEDED }, come: (node) => node.signal(runWorkflowId(node.deviceId, 1), 'orderReported', { orderId: 'wipe-1' }) }) },
];
test.each(BY_THEMSELVES)('a hold goes on by itself: $what', async ({ acts: make, code }) => {
  const { acts, come } = make();
  const node = workflows.node(acts);
  const handle = await workflows.startRun(node);
  await untilHeld(handle, code);
  await come(node);
  expect((await workflows.endOf(handle)).end).toBe('done');
});

describe('an installed system that is not seen', () => {
  /** A run whose node rebooted and says nothing; its limit has passed. */
  async function unseen(): Promise<{ node: Bench; handle: WorkflowHandle }> {
    const node = workflows.node({ postOrder: async ({ action }) => ({ orderId: `${action.title}-1`, grant: 1 }) });
    const handle = await workflows.startRun(node);
    await until('the run waits for the system', async () => (await runView(handle)).phase === 'confirming' && (await runView(handle)).waitsFor.includes('seed'));
    expect((await runView(handle)).hold).toBeNull();
    await workflows.skipUntilHeld(node, handle, 'seed_not_fetched');
    return { node, handle };
  }
  const seen = (node: Bench): Promise<void> => node.signal(runWorkflowId(node.deviceId, 1), 'systemSeen', { run: 1, how: 'seed-fetched' });

  test('holds, and goes on by itself when it is seen after all', async () => {
    const { node, handle } = await unseen();
    await seen(node);
    expect((await workflows.endOf(handle)).end).toBe('done');
  });
  test('is waited for again on resume', async () => {
    const { node, handle } = await unseen();
    await workflows.say(handle, 'resume');
    await until('no longer held', async () => (await runView(handle)).hold === null);
    await seen(node);
    expect((await workflows.endOf(handle)).end).toBe('done');
  });
  test('is installed again by a new run on retry', async () => {
    const { handle } = await unseen();
    await workflows.say(handle, 'retry');
    expect(await workflows.endOf(handle)).toMatchObject({ end: 'failed', failure: { code: 'seed_not_fetched' }, retryBy: 'tester' });
  });
});

test('what is not answered within its limit holds the run with the reason, and resume asks again', async () => {
  let isAway = true;
  const node = workflows.node({ takeRequest: (_input, usual) => { if (isAway) throw fails('netbox_unreachable', { why: 'gone' }); return usual(); } });
  const handle = await workflows.startRun(node);
  await workflows.skipUntilHeld(node, handle, 'netbox_unreachable');
  expect(node.called('takeRequest').length).toBeGreaterThan(5);
  isAway = false;
  await workflows.say(handle, 'resume');
  expect((await workflows.endOf(handle)).end).toBe('done');
});

test('retry on an unknown order boots the node anew, and names who granted it', async () => {
  const node = workflows.node(ofWipe({ kind: 'unknown', since: 's' }));
  const handle = await workflows.startRun(node);
  await untilHeld(handle, 'outcome_unknown');
  await workflows.say(handle, 'retry');
  await workflows.endOf(handle);
  expect(node.called('postOrder').map(({ bootAttempt, grantUnknown }) => [bootAttempt, grantUnknown])).toEqual([['attempt-1', null], ['attempt-2', 'tester'], ['attempt-2', null], ['attempt-2', null]]);
  expect(node.called('changePower').map(({ command }) => command)).toEqual(['off', 'on', 'off', 'on']);
});

test.each([
  ['for nobody', { by: '' }, /by/],
  ['without the Temporal run it is meant for', { runId: undefined }, /runId must be/],
  ['for another Temporal run', { runId: 'former' }, /runId must be/],
  ['to a run that is not held', {}, /the run is not held/],
] as const)('a verb said %s is refused, and says why', async (_how, input, why) => {
  const { passed, open } = gate<typeof SUCCEEDED>();
  const node = workflows.node({ awaitOrder: ({ orderId }, usual) => (orderId === 'wipe-1' ? passed : usual()) });
  const handle = await workflows.startRun(node);
  await until('the order is offered', async () => (await runView(handle)).orders.length === 1);
  expect(await workflows.say(handle, 'resume', input)).toMatch(why);
  open(SUCCEEDED);
  expect((await workflows.endOf(handle)).end).toBe('done');
});

describe('in the middle of an order', () => {
  async function withWipeUnderWay(): Promise<{ node: Bench; handle: WorkflowHandle; open: (answer: typeof SUCCEEDED) => void }> {
    const { passed, open } = gate<typeof SUCCEEDED>();
    const node = workflows.node({ awaitOrder: ({ orderId }, usual) => (orderId === 'wipe-1' ? passed : usual()) });
    const handle = await workflows.startRun(node);
    await until('the order is offered', async () => (await runView(handle)).orders.length === 1);
    return { node, handle, open };
  }

  test.each([
    ['a retirement asked in NetBox', (node: Bench) => node.signal(runWorkflowId(node.deviceId, 1), 'stopAtSafePoint', { by: 'NetBox', request: 'retire' }), 'NetBox for retire'],
    ['cancel', (_node: Bench, handle: WorkflowHandle) => workflows.say(handle, 'cancel'), 'tester'],
  ] as const)('%s stops the run at the next safe point, never there', async (_what, stop, by) => {
    const { node, handle, open } = await withWipeUnderWay();
    await stop(node, handle);
    expect(await until('the asking is seen', async () => (await runView(handle)).stopAsked)).toBe(by);
    expect(node.called('cancelOrders').length + node.called('finishRun').length).toBe(0);
    open(SUCCEEDED);
    expect(await workflows.endOf(handle)).toMatchObject({ end: 'cancelled', failure: { message: `cancelled by ${by}` } });
    expect(node.called('postOrder')).toHaveLength(1);
  });

  test('hold waits for the order, then holds until resume', async () => {
    const { node, handle, open } = await withWipeUnderWay();
    expect(await workflows.say(handle, 'hold', { reason: 'lunch' })).toMatch(/next safe point/);
    expect((await runView(handle)).hold).toBeNull();
    open(SUCCEEDED);
    expect((await untilHeld(handle, 'held_by_person'))?.message).toBe('held by tester: lunch');
    expect(node.called('postOrder')).toHaveLength(1);
    await workflows.say(handle, 'resume');
    expect((await workflows.endOf(handle)).end).toBe('done');
  });

  test('a signal that does not fit is ignored', async () => {
    const { node, handle, open } = await withWipeUnderWay();
    await node.signal(runWorkflowId(node.deviceId, 1), 'stopAtSafePoint', { by: 7 });
    await node.signal(runWorkflowId(node.deviceId, 1), 'attested', 'rubbish');
    open(SUCCEEDED);
    expect((await workflows.endOf(handle)).end).toBe('done');
  });
});

describe('a retirement', () => {
  const notOff = { kind: 'not-off', power: 'on', failure: failure('bmc_still_on', { power: 'on' }) } as const;
  test('is done when off was read twice, without a boot', async () => {
    const node = workflows.node();
    expect((await workflows.endOf(await workflows.startRun(node, 'retire'))).end).toBe('done');
    expect(node.called('confirmOff')).toHaveLength(1);
    expect(node.called('openBootAttempt')).toEqual([]);
  });
  test('whose machine is not off is held, and goes on by itself when it reads off', async () => {
    const { passed, open } = gate<'off'>();
    const node = workflows.node({ ...first('confirmOff', notOff), waitForPower: () => passed });
    const handle = await workflows.startRun(node, 'retire');
    await untilHeld(handle, 'bmc_still_on');
    open('off');
    expect(await workflows.endOf(handle)).toMatchObject({ end: 'done' });
    expect(node.called('confirmOff')).toHaveLength(2);
  });
  test('is closed without the word of the BMC only by an approver who says that the machine is gone', async () => {
    const node = workflows.node({ confirmOff: () => notOff, waitForPower: endless });
    const handle = await workflows.startRun(node, 'retire');
    await untilHeld(handle, 'bmc_still_on');
    expect(await workflows.say(handle, 'approve')).toMatch(/attestRemoved/);
    await workflows.say(handle, 'approve', { attestRemoved: true, reason: 'scrapped' });
    expect(await workflows.endOf(handle)).toMatchObject({ end: 'done', unproven: true, by: 'tester' });
  });
});
