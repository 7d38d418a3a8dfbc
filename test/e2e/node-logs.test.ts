/** What nodes say over syslog while they are installed, read by people with the command line. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runWorkflowId } from '../../src/contracts/messages.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { limits: { agentSilence: 6 } });
  await world.start();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

const logsOf = async (node: WorldNode, ...words: string[]): Promise<string[]> => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(process.cwd(), 'dist', 'bin.js'), 'node', 'logs', node.name, '--url', world.house.addresses.operator, '--json', ...words], { env: { PATH: process.env['PATH'] ?? '', METALFLOW_OPERATOR_TOKEN: world.token } });
  return stdout.split('\n').filter(Boolean).map((text) => (JSON.parse(text) as { text: string }).text);
};

test("each node's own words are read by run, and a failed action's record says where", async () => {
  const [good, bad] = [await world.addNode({ payload: 'nixos-image' }), await world.addNode({ payload: 'nixos-image' })];
  bad.machine.node.setBehaviours({ dieAt: { action: 'write-image', afterBytes: 0 } });
  for (const node of [good, bad]) world.ask(node, 'provision');
  await world.untilState(good, 'active');
  await world.until('the dead node is held', async () => (await world.run(bad, 1)).hold);

  // The dead node has said its last word long ago; the good one says more, and words are kept a moment after they are said.
  const ofBad = await logsOf(bad, '--run', '1');
  const ofGood = await world.until('its words are kept', async () => {
    const said = await logsOf(good, '--run', '1');
    return said.includes('write-image: started') && said.length > ofBad.length && said;
  });
  // One boot each: the words of the other are not among them.
  for (const said of [ofGood, ofBad]) expect(said.filter((text) => text.startsWith('asks '))).toHaveLength(1);
  expect(await logsOf(good, '--run', '2')).toEqual([]);

  const { orders } = await world.run(bad, 1);
  expect(orders.find(({ action }) => action === 'write-image')).toMatchObject({ state: 'unknown', logs: `/api/v1/nodes/${bad.deviceId}/logs?run=1` });
  expect((await world.run(good, 1)).orders.map(({ logs }) => logs)).not.toContainEqual(expect.any(String));
  const page = await world.api('GET', orders.find(({ logs }) => logs)!.logs!);
  expect((page.body['lines'] as { text: string }[]).map(({ text }) => text)).toEqual(ofBad);
  const { currentDetails } = await world.temporal.client.workflow.getHandle(runWorkflowId(bad.deviceId, 1)).query<{ currentDetails: string }>('__temporal_workflow_metadata');
  expect(currentDetails).toContain(`metalflow node logs ${bad.name} --run 1`);
});
