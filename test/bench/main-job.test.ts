/** What an operator waits for: webhook to power-off on the wire, order to agent, and what a provision leaves in a history. */
import { runWorkflowId } from '../../src/contracts/messages.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { printFigures, summary } from './print.js';

const NODES = Number(process.env['BENCH_NODES'] ?? 15);

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { env: { METALFLOW_LOG_LEVEL: 'warn', METALFLOW_RECONCILE_SECONDS: '600' } });
  await world.start();
}, 60_000);
afterAll(async () => {
  await world?.close();
  await temporal?.close();
}, 60_000);

/** The moment the first power-off request reached the simulated AMT. */
const powerOffAt = (node: WorldNode): number | null => {
  const first = node.machine.amt.counts().powerCommands.find((command) => command.value === 8);
  return first ? Date.parse(first.at) : null;
};

test('webhook to power-off, order to agent, history of a provision', async () => {
  const toPowerOff: number[] = [];
  const histories: { events: number; bytes: number }[] = [];
  for (let index = 0; index < NODES; index++) {
    const node = await world.addNode({ payload: 'talos' });
    node.machine.amt.setPower('on');
    await world.netbox.settled();
    world.ask(node, 'provision');
    await world.netbox.settled();
    const accepted = Date.now();
    toPowerOff.push((await world.until('power off', () => powerOffAt(node))) - accepted);
    await world.untilState(node, 'active');
    const { historyLength, historySize } = await world.temporal.client.workflow.getHandle(runWorkflowId(node.deviceId, 1)).describe();
    histories.push({ events: historyLength, bytes: Number(historySize ?? 0) });
  }
  const db = await world.db();
  const orders = await db.selectFrom('agent_order').select(['queued_at', 'consumed_at', 'title']).where('consumed_at', 'is not', null).execute();
  const toAgent = orders.map((order) => Date.parse(order.consumed_at!) - Date.parse(order.queued_at));
  printFigures(`main job, ${NODES} provisions one after the other`, {
    'webhook accepted → power-off request on the wire': summary(toPowerOff),
    'order posted → taken by the agent (long poll and consume)': summary(toAgent),
    'events of a provision run': `${Math.min(...histories.map((h) => h.events))}–${Math.max(...histories.map((h) => h.events))}`,
    'bytes of its history': `${Math.min(...histories.map((h) => h.bytes))}–${Math.max(...histories.map((h) => h.bytes))}`,
  });
  expect(toPowerOff).toHaveLength(NODES);
  expect(toAgent.length).toBeGreaterThanOrEqual(NODES);
}, 600_000);
