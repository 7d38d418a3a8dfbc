/** Store and Temporal that do not belong together: nothing is wiped, powered, offered or served until a person adopts. */
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lifecycleId, runWorkflowId } from '../../src/contracts/messages.js';
import { startAgentProxy, type AgentProxy } from '../support/world/agent-proxy.js';
import { begun, bootOrders, inStore, powerCommands, refused, say, untilHeld, untilRunEnds } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const DATABASE = ['metalflow.db', 'metalflow.db-wal', 'metalflow.db-shm'];
const REASON = 'I looked at both';

let temporal: TestTemporal;
let proxy: AgentProxy;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
});
beforeEach(async () => {
  proxy = await startAgentProxy();
  world = await createWorld(temporal, { env: proxy.env, limits: { agentSilence: 6 } });
  await world.start();
});
afterEach(async () => {
  await world?.close();
  await proxy?.close();
});
afterAll(() => temporal?.close());

interface Fleet {
  readonly planned: WorldNode;
  readonly active: WorldNode;
  /** In the middle of its image, dead, with a token, a code and an order in hand. */
  readonly midRun: WorldNode;
}

async function fleet(): Promise<Fleet> {
  const [planned, active, midRun] = [await world.addNode(), await world.addNode(), await world.addNode()];
  midRun.machine.node.setBehaviours({ dieAt: { action: 'write-image', afterBytes: 1024 * 1024 } });
  world.ask(active, 'provision');
  world.ask(midRun, 'provision');
  await world.untilState(active, 'active');
  await untilHeld(world, midRun, 'outcome_unknown');
  await world.until('the planned one is known', async () => (await world.node(planned)).state === 'planned');
  return { planned, active, midRun };
}

/** What machines and agents have seen: it must not grow. */
const traces = (nodes: readonly WorldNode[]) => nodes.map((node) => [powerCommands(node), bootOrders(node), begun(node, 'wipe-disk'), begun(node, 'write-image')]);

async function expectNothingServed(node: WorldNode): Promise<void> {
  const script = await fetch(`${world.house.addresses.bootHttp}/ipxe/script/${node.mac}/auto.ipxe`);
  expect(await script.text()).not.toContain(', run ');
  const { permissions, sessions, codes } = await inStore(world, async (db) => ({
    permissions: await db.selectFrom('permission').selectAll().execute(),
    sessions: await db.selectFrom('session').selectAll().where('revoked_at', 'is', null).execute(),
    codes: await db.selectFrom('install_code').selectAll().where('revoked_at', 'is', null).where('device_id', '=', node.deviceId).execute(),
  }));
  expect({ permissions, sessions, codes }).toEqual({ permissions: [], sessions: [], codes: [] });
}

async function expectRefused(node: WorldNode, secrets: { token: string; installCode: string | null }): Promise<void> {
  const get = (path: string, bearer: string) => fetch(`${world.house.addresses.agent}${path}`, { headers: { authorization: `Bearer ${bearer}` } }).then(({ status }) => status);
  expect(await get('/v1/orders/next?wait=0', secrets.token)).toBe(401);
  expect(await get(`/v1/seed/${node.systemUuid}`, secrets.installCode!)).toBe(401);
}

async function expectAllHeld({ planned, active, midRun }: Fleet): Promise<void> {
  for (const node of [planned, active, midRun]) await untilHeld(world, node, 'installation_mismatch');
}

describe('a full store beside an empty Temporal', () => {
  test('holds every device, serves and does nothing, and goes on device by device as each is adopted', async () => {
    const nodes = await fleet();
    const { planned, active, midRun } = nodes;
    const secrets = proxy.secretsOf(midRun.mac);
    await world.house.stop();
    const before = traces(Object.values(nodes));
    const other = await temporal.namespace();
    await world.start({ TEMPORAL_NAMESPACE: other.name });

    await expectAllHeld(nodes);
    world.ask(planned, 'provision');
    world.ask(active, 'reprovision');
    await midRun.machine.node.reset('network');
    await expectNothingServed(midRun);
    await expectRefused(midRun, secrets);
    expect(await refused(world, active, 'resume')).toContain('adopt');
    expect(await refused(world, active, 'adopt')).toContain('reason_required');
    // The held lifecycles have looked at what was asked, and left it.
    await world.until('the requests were seen', async () => (await Promise.all([planned, active].map((node) => other.temporal.look(lifecycleId(node.deviceId))))).every(({ kind }) => kind === 'running'));
    await expectAllHeld(nodes);
    expect(traces(Object.values(nodes))).toEqual(before);
    expect([world.netbox.device(planned.deviceId).customFields['desired_action'], world.netbox.device(active.deviceId).customFields['desired_action']]).toEqual(['provision', 'reprovision']);

    await say(world, active, 'adopt', { reason: REASON });
    expect(await untilRunEnds(world, active, 2)).toMatchObject({ kind: 'reprovision', end: 'done' });
    await world.untilState(active, 'active');
    // One adoption is one device.
    await untilHeld(world, planned, 'installation_mismatch');
    await untilHeld(world, midRun, 'installation_mismatch');

    // The run is taken up: from power off, through a new boot and a new attestation.
    midRun.machine.node.setBehaviours({ dieAt: undefined });
    const boots = (await world.run(midRun, 1)).bootAttempts;
    await say(world, midRun, 'adopt', { reason: REASON });
    await world.untilState(midRun, 'active');
    expect(await world.run(midRun, 1)).toMatchObject({ end: 'done', bootAttempts: boots + 1 });

    await say(world, planned, 'adopt', { reason: REASON });
    await world.untilState(planned, 'active');
  });
});

describe('a full Temporal beside an empty store', () => {
  test('holds every device that NetBox has, stops the runs of the lost store, and begins again after adoption', async () => {
    const nodes = await fleet();
    const { planned, active, midRun } = nodes;
    const secrets = proxy.secretsOf(midRun.mac);
    await world.house.stop();
    const before = traces(Object.values(nodes));
    for (const file of DATABASE) rmSync(join(world.dir, file), { force: true });
    await world.start();

    await expectAllHeld(nodes);
    await midRun.machine.node.reset('network');
    await expectNothingServed(midRun);
    await expectRefused(midRun, secrets);
    await world.until('the lost run has ended', async () => (await world.temporal.look(runWorkflowId(midRun.deviceId, 1))).kind === 'closed');
    await expectAllHeld(nodes);
    expect(traces(Object.values(nodes))).toEqual(before);
    expect(['planned', 'active', 'staged']).toEqual([planned, active, midRun].map((node) => world.netbox.device(node.deviceId).status));

    await say(world, active, 'adopt', { reason: REASON });
    await world.untilState(active, 'active');
    world.ask(active, 'reprovision');
    // Run 1 was the lost store's: its number is not used again.
    expect(await untilRunEnds(world, active, 2)).toMatchObject({ kind: 'reprovision', end: 'done' });

    midRun.machine.node.setBehaviours({ dieAt: undefined });
    await say(world, midRun, 'adopt', { reason: REASON });
    await world.untilState(midRun, 'failed');
    world.ask(midRun, 'provision');
    expect(await untilRunEnds(world, midRun, 2)).toMatchObject({ end: 'done' });
    await world.untilState(midRun, 'active');

    await say(world, planned, 'adopt', { reason: REASON });
    await world.untilState(planned, 'planned');
    world.ask(planned, 'provision');
    await world.untilState(planned, 'active');
  });
});

describe('a store that was put back from a backup', () => {
  test('knows less than Temporal: held, nothing done; adopted, the node is what NetBox says', async () => {
    const node = await world.addNode();
    await world.until('known', async () => (await world.node(node)).state === 'planned');
    await world.house.stop();
    for (const file of DATABASE) copyQuietly(join(world.dir, file), join(world.dir, `${file}.backup`));
    await world.start();
    world.ask(node, 'provision');
    await world.untilState(node, 'active');
    await world.house.stop();
    for (const file of DATABASE) {
      rmSync(join(world.dir, file), { force: true });
      copyQuietly(join(world.dir, `${file}.backup`), join(world.dir, file));
    }
    const before = traces([node]);
    await world.start();

    const held = await untilHeld(world, node, 'installation_mismatch');
    expect(held.hold.message).toContain(runWorkflowId(node.deviceId, 1));
    world.ask(node, 'provision');
    await world.netbox.settled();
    await untilHeld(world, node, 'installation_mismatch');
    expect(traces([node])).toEqual(before);
    world.ask(node, null);

    await say(world, node, 'adopt', { reason: REASON });
    await world.untilState(node, 'active');
    world.ask(node, 'reprovision');
    expect(await untilRunEnds(world, node, 2)).toMatchObject({ end: 'done' });
  });
});

test('a lifecycle that was terminated while store and Temporal belong together is simply started again, also by what a person says', async () => {
  const node = await world.addNode({ status: 'active' });
  await world.until('known', async () => (await world.node(node)).state === 'active');
  const handle = world.temporal.client.workflow.getHandle(lifecycleId(node.deviceId));
  await world.until('living', async () => (await world.temporal.look(lifecycleId(node.deviceId))).kind === 'running');
  await handle.terminate('by hand');
  await say(world, node, 'maintenance', { on: true, reason: 'new memory' });
  await world.untilState(node, 'maintenance');
  expect((await world.node(node)).hold).toBeNull();
});

/** A store that was closed well has no log beside it. */
function copyQuietly(from: string, to: string): void {
  if (existsSync(from)) copyFileSync(from, to);
}
