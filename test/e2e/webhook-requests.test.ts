/** What NetBox says, in whatever order and however often: hints. What it holds when it is read is what counts. */
import type { Delivery } from '../../src/simulator/netbox-stand-in/webhooks.js';
import { SITE_FIELDS } from '../../src/simulator/netbox-stand-in/custom-fields.js';
import type { RunRow } from '../../src/contracts/operator.js';
import { sign } from '../support/netbox-hooks.js';
import { addClass, begun, inStore, journal, netboxJournal, powerCommands, say, untilHeld, untilRunEnds } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const OFF_ONLY = 'off-only';

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  // A text field takes what a select field refuses; NetBox shows both as plain values before 4.7.
  world = await createWorld(temporal, { netboxFields: { ...SITE_FIELDS, desired_action: { type: 'text' } } });
  addClass(world, OFF_ONLY, 'talos', () => ({ retireWipes: false }));
  await world.start();
});
afterEach(() => {
  world.netbox.dropWebhooks = false;
  world.netbox.down = false;
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

/** A running node whose retirement is power alone: the shortest run there is. */
async function runningNode(): Promise<WorldNode> {
  const node = await world.addNode({ status: 'active', customFields: { node_class: OFF_ONLY } });
  node.machine.amt.setPower('on');
  await world.until(`${node.name} is known`, async () => (await world.node(node)).state === 'active');
  return node;
}

/** What NetBox would have sent, were its worker there. */
function lost(write: () => void): Delivery[] {
  const before = world.netbox.deliveries().length;
  world.netbox.dropWebhooks = true;
  write();
  world.netbox.dropWebhooks = false;
  return world.netbox.deliveries().slice(before);
}

async function deliver(body: string): Promise<{ status: number; taken: string }> {
  const { url, secret } = world.netbox.webhook!;
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', 'x-hook-signature': sign(body, secret) }, body });
  return { status: answer.status, taken: ((await answer.json()) as { taken: string }).taken };
}

const edited = (body: string, edit: (hook: { request: { id: string }; data: Record<string, unknown> }) => void): string => {
  const hook = JSON.parse(body);
  edit(hook);
  return JSON.stringify(hook);
};

async function runsOf(node: WorldNode): Promise<RunRow[]> {
  const { body } = await world.api('GET', `/api/v1/nodes/${node.deviceId}`);
  return body['runs'] as RunRow[];
}

describe('one save, many hooks (N1)', () => {
  test('two hooks of one request are one run, and replays of either are none', async () => {
    const node = await runningNode();
    const [hook] = lost(() => world.ask(node, 'retire'));
    const twin = edited(hook!.body, ({ data }) => void (data['tags'] = ['x']));
    expect(await deliver(hook!.body)).toMatchObject({ status: 202, taken: 'signalled' });
    expect((await deliver(twin)).status).toBe(202);
    await world.untilState(node, 'retired');
    for (const body of [hook!.body, twin]) expect((await deliver(body)).status).toBe(202);
    expect(await runsOf(node)).toHaveLength(1);
    expect(powerCommands(node)).toEqual([8]);
  });

  test('one bulk edit of three devices is three runs', async () => {
    const nodes = [await runningNode(), await runningNode(), await runningNode()];
    const hooks = lost(() => nodes.forEach((node) => world.ask(node, 'retire'))).map(({ body }) => edited(body, ({ request }) => void (request.id = '6f8a1c3e-0000-4000-8000-00000000b01c')));
    for (const body of hooks) expect(await deliver(body)).toMatchObject({ status: 202, taken: 'signalled' });
    for (const node of nodes) await world.untilState(node, 'retired');
    expect((await Promise.all(nodes.map(runsOf))).map((runs) => runs.length)).toEqual([1, 1, 1]);
  });
});

describe('late, out of order, lost (N3)', () => {
  test('a hook that comes after a newer one is stale, and what NetBox holds is done', async () => {
    const node = await runningNode();
    const [older] = lost(() => world.ask(node, 'wipe'));
    const [newer] = lost(() => world.ask(node, 'retire'));
    expect(await deliver(newer!.body)).toMatchObject({ status: 202, taken: 'signalled' });
    expect(await deliver(older!.body)).toMatchObject({ status: 202, taken: 'stale' });
    await world.untilState(node, 'retired');
    expect(await deliver(older!.body)).toMatchObject({ status: 202, taken: 'stale' });
    expect((await runsOf(node)).map(({ kind }) => kind)).toEqual(['retire']);
    expect(begun(node, 'wipe-disk')).toEqual([]);
  });

  test('a lost one is found by the reconcile', async () => {
    const node = await runningNode();
    expect(lost(() => world.ask(node, 'retire'))).toHaveLength(1);
    await world.untilState(node, 'retired');
    expect(await runsOf(node)).toHaveLength(1);
  });

  test('one for a retired device writes nothing, neither there nor here', async () => {
    const node = await runningNode();
    const [hook] = lost(() => world.ask(node, 'retire'));
    await world.untilState(node, 'retired');
    await world.until('the lifecycle has ended', async () => (await world.temporal.look(`node/${node.deviceId}`)).kind === 'closed');
    const snapshot = async () => ({
      netbox: world.netbox.device(node.deviceId), journal: netboxJournal(world, node),
      row: await inStore(world, (db) => db.selectFrom('device').selectAll().where('device_id', '=', node.deviceId).execute()), lines: (await journal(world, node)).length,
    });
    const before = await snapshot();
    const { runId } = await world.temporal.client.workflow.getHandle(`node/${node.deviceId}`).describe();
    // As an operator re-queues an old job: another request, so that nothing is dropped at the edge.
    const again = edited(hook!.body, ({ request, data }) => {
      request.id = '6f8a1c3e-0000-4000-8000-0000000001a7';
      data['last_updated'] = new Date().toISOString();
    });
    expect(await deliver(again)).toMatchObject({ status: 202, taken: 'signalled' });
    await world.until('a lifecycle looked and ended', async () => {
      const seen = await world.temporal.client.workflow.getHandle(`node/${node.deviceId}`).describe();
      return seen.runId !== runId && seen.status.name === 'COMPLETED';
    });
    expect(await snapshot()).toEqual(before);
  });
});

describe('requests', () => {
  test('taken back before the run took it: withdrawn, and the status is what it was', async () => {
    const node = await world.addNode();
    await node.machine.amt.setFaults({ otherUuid: '4c4c4544-ffff-4000-8000-00000000ffff' });
    world.ask(node, 'provision');
    await untilHeld(world, node, 'bmc_is_another_machine');
    expect(world.netbox.device(node.deviceId).status).toBe('staged');
    world.ask(node, null);
    await node.machine.amt.setFaults({ otherUuid: null });
    await say(world, node, 'resume');
    expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'withdrawn' });
    await world.untilState(node, 'planned');
    await world.until('the status is back', () => world.netbox.device(node.deviceId).status === 'planned');
    expect(powerCommands(node)).toEqual([]);
  });

  test('provision of an active node is refused, with what to ask instead, once', async () => {
    const node = await runningNode();
    world.ask(node, 'provision');
    await world.until('told', () => netboxJournal(world, node).some((text) => text.includes('it runs; ask for reprovision')));
    world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
    await world.netbox.settled();
    world.ask(node, null);
    await world.until('seen', async () => (await world.node(node)).state === 'active');
    expect(netboxJournal(world, node).filter((text) => text.includes('it runs; ask for reprovision'))).toHaveLength(1);
    expect(await runsOf(node)).toEqual([]);
  });

  test('an action that is none is journalled once and starts nothing (N5)', async () => {
    const node = await runningNode();
    world.netbox.patchDevice(node.deviceId, { custom_fields: { desired_action: 'obliterate' } });
    const told = (): string[] => netboxJournal(world, node).filter((text) => text.includes('obliterate'));
    await world.until('told', () => told().length > 0);
    world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
    world.ask(node, 'retire');
    await world.untilState(node, 'retired');
    expect(told()).toHaveLength(1);
    expect((await runsOf(node)).map(({ kind }) => kind)).toEqual(['retire']);
  });

  test('an active device without history is adopted and not touched', async () => {
    const node = await world.addNode({ status: 'active' });
    const { lastUpdated } = world.netbox.device(node.deviceId);
    const row = await world.until('known', async () => world.node(node));
    expect(row).toMatchObject({ state: 'active', adopted: true });
    await world.until('the lifecycle waits', async () => (await world.lifecycleView(node)).state === 'active');
    expect(node.machine.amt.counts().requests).toBe(0);
    expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'active', lastUpdated });
    expect(netboxJournal(world, node)).toEqual([]);
  });
});

describe('a status that a person changed', () => {
  test('before a run is begun holds the node, and resume lets ours stand', async () => {
    const node = await world.addNode();
    await world.until('known', async () => (await world.node(node)).state === 'planned');
    world.netbox.patchDevice(node.deviceId, { status: 'failed' });
    world.ask(node, 'provision');
    const held = await untilHeld(world, node, 'netbox_conflict');
    expect(held.hold.message).toBe('a person changed status to failed since our last write');
    expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'failed', customFields: { desired_action: 'provision' } });
    expect(powerCommands(node)).toEqual([]);
    await world.untilState(node, 'held');
    // Looked at again, it opens no run that it could not begin either.
    world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
    await world.until('kept', async () => (await world.lifecycleView(node)).nextRequest === 'provision');
    expect((await runsOf(node)).map(({ end }) => end)).toEqual(['withdrawn']);
    await say(world, node, 'resume');
    await world.untilState(node, 'active');
    expect((await runsOf(node)).map(({ end }) => end)).toEqual(['done', 'withdrawn']);
    expect(world.netbox.device(node.deviceId).status).toBe('active');
  });

  test('while a run is open is not overwritten at its end', async () => {
    const node = await world.addNode();
    await node.machine.amt.setFaults({ refuse: { RequestPowerStateChange: 2 } });
    world.ask(node, 'provision');
    await untilHeld(world, node, 'bmc_refused');
    world.netbox.patchDevice(node.deviceId, { status: 'offline' });
    await node.machine.amt.setFaults({ refuse: {} });
    await say(world, node, 'resume');
    await untilHeld(world, node, 'netbox_conflict');
    expect(world.netbox.device(node.deviceId).status).toBe('offline');
    await say(world, node, 'resume');
    await world.untilState(node, 'active');
    await world.until('ours stands', () => world.netbox.device(node.deviceId).status === 'active');
  });
});

test('NetBox away in mid-run stops nothing: the run ends, and its status is written when NetBox is back', async () => {
  const node = await world.addNode();
  await node.machine.amt.setFaults({ refuse: { RequestPowerStateChange: 2 } });
  world.ask(node, 'provision');
  await untilHeld(world, node, 'bmc_refused');
  world.netbox.down = true;
  await node.machine.amt.setFaults({ refuse: {} });
  await say(world, node, 'resume');
  expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'done' });
  expect(world.netbox.device(node.deviceId).status).toBe('staged');
  world.netbox.down = false;
  await world.untilState(node, 'active');
  await world.until('written', () => world.netbox.device(node.deviceId).status === 'active');
});

test('a planned node that boots by itself attests and waits; provision then uses it as it is, without a power command', async () => {
  const node = await world.addNode();
  await world.until('known', async () => (await world.node(node)).state === 'planned');
  node.machine.amt.setPower('on');
  await world.until('it waits', () => netboxJournal(world, node).some((text) => text.includes('attested and waits')));
  expect((await world.node(node)).state).toBe('planned');
  world.ask(node, 'provision');
  await world.untilState(node, 'active');
  expect(powerCommands(node)).toEqual([]);
  expect(await world.run(node, 1)).toMatchObject({ end: 'done', bootAttempts: 1 });
});
