/** A lifecycle under more signals than a history should hold: it begins new histories, loses nothing, and sees its run's end. */
import { lifecycleId, runWorkflowId, SIGNALS, WORKFLOW_QUEUE, WORKFLOWS } from '../../src/contracts/messages.js';
import type { Db } from '../../src/store/index.js';
import { handsOn, type Hands } from '../support/world/hands.js';
import { lengthAtRest } from '../support/world/histories.js';
import { breachesOfOnce } from '../support/world/once.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World } from '../support/world/world.js';

let temporal: TestTemporal;
let world: World;
let hands: Hands;
let db: Db;
beforeAll(async () => {
  temporal = await startTestTemporal();
  // No reconcile within the test: what is lost stays lost.
  world = await createWorld(temporal, { env: { METALFLOW_RECONCILE_SECONDS: '3600', METALFLOW_LOG_LEVEL: 'warn' } });
  await world.start();
  hands = handsOn(temporal, world);
  db = await world.db();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

/** A page of the Temporal UI, and half of where the server begins to warn. */
const LONGEST_HISTORY = 10_240;

const signalMany = async (workflowId: string, count: number): Promise<void> => {
  const handle = world.temporal.client.workflow.getHandle(workflowId);
  for (let sent = 0; sent < count; sent += 100) await Promise.all(Array.from({ length: Math.min(100, count - sent) }, () => handle.signal(SIGNALS.deviceChanged.name, { source: 'temporal' })));
};

/** Events of each run of a workflow id, oldest first. */
async function historiesOf(workflowId: string): Promise<number[]> {
  const lengths: { at: number; events: number }[] = [];
  for await (const { runId, startTime } of world.temporal.client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    const { historyLength } = await world.temporal.client.workflow.getHandle(workflowId, runId).describe();
    lengths.push({ at: startTime.getTime(), events: Number(historyLength) });
  }
  return lengths.sort((a, b) => a.at - b.at).map(({ events }) => events);
}

test('12,000 signals while a run is open: short histories, no signal lost, and the end of the run is seen', async () => {
  const node = await world.addNode({ status: 'active' });
  await node.machine.amt.setFaults({ otherUuid: '4c4c4544-9999-4000-8000-000000000001' });
  world.ask(node, 'reprovision');
  await world.until('the run is held', async () => (await world.runView(node, 1)).hold !== null);
  const id = lifecycleId(node.deviceId);
  const first = await hands.runIdOf(id);
  const { webhook } = world.netbox;
  world.netbox.webhook = null;
  for (let round = 1; round <= 12; round++) {
    // Known only to whoever reads the device after this.
    world.netbox.patchDevice(node.deviceId, { name: `${node.name}-${round}` });
    await signalMany(id, 1000);
    await world.until(`the lifecycle has looked after round ${round}`, async () => (await world.lifecycleView(node)).node === `${node.name}-${round}`);
  }
  world.netbox.webhook = webhook;
  expect(await hands.runIdOf(id)).not.toBe(first);
  expect((await world.lifecycleView(node)).openRun?.run).toBe(1);
  await node.machine.amt.setFaults({ otherUuid: null });
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/resume`, {})).toMatchObject({ status: 200 });
  await world.untilState(node, 'active');
  expect((await world.run(node, 1)).end).toBe('done');
  expect(await breachesOfOnce(db, node)).toEqual([]);
  const histories = await historiesOf(id);
  expect(histories.length).toBeGreaterThan(1);
  expect(Math.max(...histories)).toBeLessThan(LONGEST_HISTORY);
  expect(Math.max(...(await historiesOf(runWorkflowId(node.deviceId, 1))))).toBeLessThan(LONGEST_HISTORY);
});

test('12,000 webhooks that say nothing new are dropped at the edge', async () => {
  const node = await world.addNode({ status: 'active' });
  world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
  await world.netbox.settled();
  const { body, headers } = world.netbox.deliveries().findLast(({ deviceId }) => deviceId === node.deviceId)!;
  const send = async (): Promise<string> => {
    const response = await fetch(`${world.house.addresses.operator}/webhooks/netbox`, { method: 'POST', body, headers });
    return response.status === 202 ? ((await response.json()) as { taken: string }).taken : String(response.status);
  };
  await world.until('the lifecycle has looked', async () => (await world.lifecycleView(node)).state === 'active');
  await lengthAtRest(world, lifecycleId(node.deviceId));
  const before = await historiesOf(lifecycleId(node.deviceId));
  const answers = new Map<string, number>();
  for (let sent = 0; sent < 12_000; sent += 50) {
    for (const answer of await Promise.all(Array.from({ length: 50 }, send))) answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  expect(Object.fromEntries(answers)).toEqual({ repeated: 12_000 });
  expect(await historiesOf(lifecycleId(node.deviceId))).toEqual(before);
});

test('W1a: a request and three signals that come before any worker start one run', async () => {
  const node = await world.addNode();
  await world.house.stop();
  const { webhook } = world.netbox;
  world.netbox.webhook = null;
  world.ask(node, 'provision');
  world.netbox.webhook = webhook;
  const id = lifecycleId(node.deviceId);
  await world.temporal.signalLifecycle(node.deviceId, SIGNALS.deviceChanged.name, { source: 'webhook' });
  await signalMany(id, 3);
  await world.start();
  await world.untilState(node, 'active');
  expect((await db.selectFrom('run').select('number').where('device_id', '=', node.deviceId).execute()).map((row) => row.number)).toEqual([1]);
  expect(await historiesOf(id)).toHaveLength(1);
});

test('W1c: a signal to the id of a lifecycle that has just ended starts another, and a retired node declared again is taken up', async () => {
  const node = await world.addNode();
  world.ask(node, 'provision');
  await world.untilState(node, 'active');
  world.ask(node, 'retire');
  await world.until('the lifecycle has ended', async () => (await world.temporal.look(lifecycleId(node.deviceId))).kind === 'closed');
  const ended = await hands.runIdOf(lifecycleId(node.deviceId));
  await world.temporal.client.workflow.signalWithStart(WORKFLOWS.lifecycle, { workflowId: lifecycleId(node.deviceId), taskQueue: WORKFLOW_QUEUE, args: [{ deviceId: node.deviceId }], signal: SIGNALS.deviceChanged.name, signalArgs: [{ source: 'operator' }] });
  expect(await hands.runIdOf(lifecycleId(node.deviceId))).not.toBe(ended);
  await world.until('it has nothing to do, and ends', async () => (await world.temporal.look(lifecycleId(node.deviceId))).kind === 'closed');
  expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'offline', customFields: { lifecycle_state: 'retired' } });

  world.netbox.patchDevice(node.deviceId, { status: 'planned', custom_fields: { desired_action: 'provision' } });
  await world.untilState(node, 'active');
  expect((await world.run(node, 3)).end).toBe('done');
  expect(await breachesOfOnce(db, node)).toEqual([]);
});
