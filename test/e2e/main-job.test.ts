/** The main job through the front door, over real sockets, with the house as a real process. */
import { createWorld, type World } from '../support/world/world.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal);
  await world.start();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

test('a planned device becomes an active node, is reprovisioned, wiped, provisioned again and retired', async () => {
  const node = await world.addNode({ payload: 'talos' });
  world.ask(node, 'provision');
  await world.untilState(node, 'active');
  world.ask(node, 'reprovision');
  await world.until('reprovisioned', async () => (await world.run(node, 2)).end);
  await world.untilState(node, 'active');
  world.ask(node, 'wipe');
  await world.untilState(node, 'available');
  world.ask(node, 'provision');
  await world.untilState(node, 'active');
  world.ask(node, 'retire');
  await world.untilState(node, 'retired');

  const runs = await Promise.all([1, 2, 3, 4, 5].map((run) => world.run(node, run)));
  expect(runs.map((run) => [run.kind, run.end])).toEqual([['provision', 'done'], ['reprovision', 'done'], ['wipe', 'done'], ['provision', 'done'], ['retire', 'done']]);
  expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'offline', customFields: { desired_action: null, lifecycle_state: 'retired' } });
  expect(node.machine.amt.power()).toMatch(/^off/);
});
