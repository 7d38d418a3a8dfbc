/** What Temporal's own pages and lists say of nodes and runs, on the real server. */
import { lifecycleId, runWorkflowId } from '../../src/contracts/messages.js';
import { wordsOf } from '../support/secret-scan.js';
import { lengthAtRest } from '../support/world/histories.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

let temporal: TestTemporal;
let world: World;
let active: WorldNode;
let held: WorldNode;
let acting: WorldNode;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { limits: { poweringOff: 2, settling: 1 } });
  await world.start();
  [active, held, acting] = [await world.addNode({ name: 'rack1-active' }), await world.addNode({ name: 'rack1-held' }), await world.addNode({ name: 'rack2-acting', payload: 'nixos-image' })];
  await held.machine.amt.setPower('on');
  await held.machine.amt.setFaults({ neverOff: true });
  acting.machine.node.setBehaviours({ slowBytesPerSecond: 400_000 });
  for (const node of [active, held, acting]) world.ask(node, 'provision');
  await world.untilState(active, 'active');
  await world.until('held', async () => (await world.runView(held, 1)).hold);
  await world.until('writing its image', async () => (await world.run(acting, 1)).orders.find(({ action, state, progress }) => action === 'write-image' && state === 'consumed' && progress && progress.done > 0));
  // From here on it is as good as standing still, and acts for as long as the tests look.
  acting.machine.node.setBehaviours({ slowBytesPerSecond: 100 });
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

const handle = (workflowId: string) => world.temporal.client.workflow.getHandle(workflowId);
const runOf = (node: WorldNode) => runWorkflowId(node.deviceId, 1);
const described = (workflowId: string) => world.temporal.connection.workflowService.describeWorkflowExecution({ namespace: world.namespace, execution: { workflowId } });
const currentDetails = async (workflowId: string): Promise<string> => (await handle(workflowId).query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails;

/** A page is written when the workflow next waits. */
const untilPage = (workflowId: string, says: RegExp): Promise<string> => world.until(`the page of ${workflowId} says ${String(says)}`, async () => {
  const page = await currentDetails(workflowId);
  return says.test(page) && page;
});

/** Lists are written a moment after the fact. */
const listed = (query: string, expected: string[]) => world.until(`${query} lists ${expected.join(', ')}`, async () => {
  const ids: string[] = [];
  for await (const { workflowId } of world.temporal.client.workflow.list({ query })) ids.push(workflowId);
  return JSON.stringify(ids.sort()) === JSON.stringify([...expected].sort());
});

const LISTS: readonly [string, () => string, () => string[]][] = [
  ['a held run by its state', () => `MetalflowState = 'held'`, () => [runOf(held)]],
  ['a node, its lifecycle and its runs, by name', () => `MetalflowNode = 'rack1-active'`, () => [lifecycleId(active.deviceId), runOf(active)]],
  ['the same by device', () => `MetalflowDevice = '${held.deviceId}'`, () => [lifecycleId(held.deviceId), runOf(held)]],
  ['active nodes by state', () => `MetalflowState = 'active' AND WorkflowType = 'nodeLifecycle'`, () => [lifecycleId(active.deviceId)]],
  ['runs by phase', () => `MetalflowPhase = 'acting' AND ExecutionStatus = 'Running'`, () => [runOf(acting)]],
  ['runs by class', () => `MetalflowClass = 'nixos-image' AND WorkflowType = 'nodeRun'`, () => [runOf(acting)]],
  ['runs by the power that was read', () => `MetalflowPower = 'on' AND WorkflowType = 'nodeRun' AND ExecutionStatus = 'Running'`, () => [runOf(held), runOf(acting)]],
  ['runs by kind and site', () => `MetalflowRunKind = 'provision' AND MetalflowSite = 'lab'`, () => [runOf(active), runOf(held), runOf(acting)]],
];
test.each(LISTS)('a list finds %s', async (_, query, expected) => {
  await listed(query(), expected());
});

test('each workflow has one line that says what it is', async () => {
  const summaries = await Promise.all([lifecycleId(active.deviceId), runOf(active), 'metalflow/installation'].map(async (id) => wordsOf((await described(id)).executionConfig?.userMetadata?.summary?.data)));
  expect(summaries).toEqual([`"lifecycle of NetBox device ${active.deviceId}"`, '"provision of rack1-active, run 1"', '"which store this namespace belongs to"']);
});

test('every step and every timer of a run, and of its lifecycle, says what it is for', async () => {
  for (const workflowId of [runOf(active), lifecycleId(active.deviceId)]) {
    const events = (await handle(workflowId).fetchHistory()).events!.filter((event) => event.activityTaskScheduledEventAttributes ?? event.timerStartedEventAttributes);
    const wordless = events.filter((event) => !event.userMetadata?.summary).map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? 'timer');
    expect({ workflowId, wordless }).toEqual({ workflowId, wordless: [] });
  }
});

test('the steps of a run read as its story', async () => {
  const events = (await handle(runOf(active)).fetchHistory()).events!.filter((event) => event.activityTaskScheduledEventAttributes);
  const steps = events.map((event) => JSON.parse(wordsOf(event.userMetadata!.summary!.data)) as string);
  const story = ['phase planning', 'plan run 1 of rack1-active', 'machine UUID via AMT 127.0.0.1', 'sha256 of asset:images/talos.raw.gz', 'phase taking', 'take provision from NetBox', 'power off via AMT 127.0.0.1', 'open a boot attempt',
    'one-time PXE via AMT 127.0.0.1', 'lease netboot permission for boot attempt 1', 'power on via AMT 127.0.0.1', 'was the boot file served?', 'judge the attestation', `write-image talos → disk S/N ${active.serial}`, 'withdraw netboot permission', 'outcome: done'];
  expect(steps.filter((step) => story.includes(step))).toEqual(story);
});

test('the page of a held run says the state, since when, what it waits for and what to do', async () => {
  const page = await untilPage(runOf(held), /waits for:\*\* a person/);
  expect(page).toMatch(/^### provision of rack1-held, run 1$/m);
  expect(page).toMatch(/^\*\*held\*\* in powering-off since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: `bmc_still_on` asked off, still reads on$/m);
  expect(page).toMatch(/^\*\*waits for:\*\* a person$/m);
  expect(page).toMatch(/^\*\*to do:\*\* power it off by hand .*`metalflow node resume rack1-held`/m);
});

test('the page of a run lists its orders and what is pinned', async () => {
  const page = await untilPage(runOf(active), /write-image: succeeded/);
  expect(page).toMatch(new RegExp(`^\\*\\*power:\\*\\* on · \\*\\*boot attempt:\\*\\* 1 .* · \\*\\*disk:\\*\\* ${active.serial} · \\*\\*proof:\\*\\* unproven$`, 'm'));
  expect(page).toMatch(/^- write-image: succeeded$/m);
});

test('the page of a lifecycle says the same of its node, and points to the open run', async () => {
  expect(await untilPage(lifecycleId(active.deviceId), /to do:\*\* nothing/)).toMatch(/^### rack1-active \(NetBox device \d+\)\n\*\*active\*\* since .* UTC: the installed system has shown itself\n\n\*\*waits for:\*\* .*reprovision.*\n\*\*to do:\*\* nothing$/m);
  const page = await untilPage(lifecycleId(held.deviceId), /see the open run/);
  expect(page).toContain('**to do:** see the open run');
  expect(page).toContain(runOf(held));
});

test('the heartbeat of a pending order shows how far it is', async () => {
  const progress = await world.until('progress', async () => {
    const { pendingActivities } = await described(runOf(acting));
    const pending = pendingActivities!.find(({ activityType }) => activityType?.name === 'awaitOrder');
    const details = pending?.heartbeatDetails?.payloads?.[0];
    const seen = details && (JSON.parse(wordsOf(details.data)) as { state: string; progress?: string; done?: number });
    return seen?.progress !== undefined && seen.done! > 0 ? seen : null;
  });
  expect(progress).toMatchObject({ state: 'consumed', progress: expect.stringMatching(/^\d+ %$/), unit: 'bytes' });
});

test('a run that has ended shows nothing as pending', async () => {
  expect((await described(runOf(active))).pendingActivities).toEqual([]);
});

test('an idle lifecycle grows no history while NetBox is looked at again and again', async () => {
  const looks = async () => {
    let count = 0;
    for await (const { status } of world.temporal.client.workflow.list({ query: `WorkflowType = 'netboxReconcile'` })) if (status.name === 'COMPLETED') count++;
    return count;
  };
  const [before, seen] = [await lengthAtRest(world, lifecycleId(active.deviceId)), await looks()];
  await world.until('three more looks at NetBox', async () => (await looks()) >= seen + 3);
  expect(await lengthAtRest(world, lifecycleId(active.deviceId))).toBe(before);
});
