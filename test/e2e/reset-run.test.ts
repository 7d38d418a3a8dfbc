/** `temporal workflow reset` of a run: it trusts nothing it is handed again, and nothing destructive is done twice for it. */
import { createHash, randomBytes } from 'node:crypto';
import { lifecycleId, runWorkflowId } from '../../src/contracts/messages.js';
import type { Db } from '../../src/store/index.js';
import { handsOn, type Hands, type ResetPoint } from '../support/world/hands.js';
import { begunOrders, breachesOfOnce, isDoing } from '../support/world/once.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

let temporal: TestTemporal;
let world: World;
let hands: Hands;
let db: Db;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal);
  await world.start();
  hands = handsOn(temporal, world);
  db = await world.db();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

/** Half a minute for a disk: an order on it is under way when the test looks, and until the test has done something about it. */
const SLOW = { slowBytesPerSecond: 1024 * 1024 } as const;
/** Seen under way all the same, and done with sooner. */
const BRISK = { slowBytesPerSecond: 16 * 1024 * 1024 } as const;
const POINTS: readonly ResetPoint[] = ['FirstWorkflowTask', 'LastWorkflowTask'];

/** A node whose disk is to be wiped: a reprovision begins with a wipe. */
async function nodeToReprovision(): Promise<WorldNode> {
  const node = await world.addNode({ status: 'active' });
  world.ask(node, 'reprovision');
  return node;
}

const untilDoing = (node: WorldNode, action: string): Promise<true> => world.until(`${node.name} does ${action}`, () => isDoing(node, action) || null);

/** A token that somebody took from the node: as good as the node's own, for as long as that is good. */
async function stolenToken(node: WorldNode): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  const own = await world.until('a session of the node', () => db.selectFrom('session').selectAll().where('device_id', '=', node.deviceId).where('revoked_at', 'is', null).executeTakeFirst());
  await db.insertInto('session').values({ ...own, token_hash: createHash('sha256').update(token).digest('hex') }).execute();
  return token;
}

const nextOrder = async (token: string): Promise<number> => (await fetch(`${world.house.addresses.agent}/v1/orders/next?wait=0`, { headers: { authorization: `Bearer ${token}` } })).status;

async function untilEnd(node: WorldNode, run: number): Promise<string> {
  const { end } = await world.until(`the end of run ${run} of ${node.name}`, async () => {
    const seen = await world.run(node, run);
    return seen.end ? seen : null;
  });
  return end!;
}

describe.each(POINTS)('reset to %s', (point) => {
  test('before the wipe: the node is switched off and attests anew before it is handed anything', async () => {
    const node = await nodeToReprovision();
    node.machine.node.setBehaviours({ silentAgent: true });
    const id = runWorkflowId(node.deviceId, 1);
    await world.until('the run waits for an attestation', async () => (await world.runView(node, 1)).phase === 'awaiting-attestation');
    const former = (await world.runView(node, 1)).bootAttempt;
    node.machine.node.setBehaviours({ silentAgent: undefined });
    await hands.reset(id, point);

    expect(await untilEnd(node, 1)).toBe('done');
    await world.untilState(node, 'active');
    expect(await breachesOfOnce(db, node)).toEqual([]);
    const attempts = await db.selectFrom('boot_attempt').select(['id', 'attested_at']).where('device_id', '=', node.deviceId).orderBy('id').execute();
    expect(attempts.map((attempt) => [attempt.id === former, attempt.attested_at !== null])).toEqual([[true, false], [false, true]]);
    expect(begunOrders(node, 'wipe-disk')).toHaveLength(1);
  });

  test.each(['wipe-disk', 'write-image'])('during %s: tokens are void, the order is never handed out again, and its grant rises only with a new attested boot', async (action) => {
    const node = await nodeToReprovision();
    const id = runWorkflowId(node.deviceId, 1);
    node.machine.node.setBehaviours(action === 'wipe-disk' ? SLOW : BRISK);
    await untilDoing(node, action);
    node.machine.node.setBehaviours(SLOW);
    const token = await stolenToken(node);
    const interrupted = begunOrders(node, action).at(-1)!;
    const lifecycleRun = await hands.runIdOf(lifecycleId(node.deviceId));
    const fence = await hands.reset(id, point);
    await world.until('the reset run holds the fence', async () => (await db.selectFrom('run').select('fence').where('device_id', '=', node.deviceId).executeTakeFirstOrThrow()).fence === fence);
    expect(await nextOrder(token)).toBe(401);
    node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });

    expect(await untilEnd(node, 1)).toBe('done');
    await world.untilState(node, 'active');
    expect(await breachesOfOnce(db, node)).toEqual([]);
    expect(begunOrders(node).filter((order) => order === interrupted)).toHaveLength(1);
    const grants = await db.selectFrom('agent_order').select(['id', 'grant_no', 'state']).where('device_id', '=', node.deviceId).where('action_name', '=', action).orderBy('grant_no').execute();
    expect(grants.map(({ id: order, grant_no, state }) => [order === interrupted, grant_no, state])).toEqual([[true, 1, 'cancelled'], [false, 2, 'reported']]);
    // The lifecycle that watched the run saw the end of the reset one.
    expect(await hands.runIdOf(lifecycleId(node.deviceId))).toBe(lifecycleRun);
    expect(await nextOrder(token)).toBe(401);
  });

  test('after a cancel that had not yet stopped the run: the cancel was not meant for the reset run', async () => {
    const node = await nodeToReprovision();
    node.machine.node.setBehaviours(SLOW);
    await untilDoing(node, 'wipe-disk');
    expect((await world.api('POST', `/api/v1/nodes/${node.deviceId}/cancel`, {})).status).toBe(200);
    await hands.reset(runWorkflowId(node.deviceId, 1), point);
    node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
    expect(await untilEnd(node, 1)).toBe('done');
    expect(await breachesOfOnce(db, node)).toEqual([]);
  });

  test('after the run was asked to stop for a retirement: the old asking moves nothing', async () => {
    const node = await nodeToReprovision();
    node.machine.node.setBehaviours(SLOW);
    await untilDoing(node, 'wipe-disk');
    const run = world.temporal.client.workflow.getHandle(runWorkflowId(node.deviceId, 1));
    await run.signal('stopAtSafePoint', { by: 'NetBox', request: null });
    await hands.reset(runWorkflowId(node.deviceId, 1), point);
    node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
    expect(await untilEnd(node, 1)).toBe('done');
    expect(await breachesOfOnce(db, node)).toEqual([]);
  });

  test('while the run is held: the hold of the reset run is ended by its verb', async () => {
    const node = await nodeToReprovision();
    await node.machine.amt.setFaults({ otherUuid: '4c4c4544-9999-4000-8000-000000000001' });
    await world.until('held', async () => (await world.runView(node, 1)).hold?.code === 'bmc_is_another_machine');
    const runId = await hands.reset(runWorkflowId(node.deviceId, 1), point);
    await node.machine.amt.setFaults({ otherUuid: null });
    expect(await hands.runIdOf(runWorkflowId(node.deviceId, 1))).toBe(runId);
    // Whether it is held again depends on how far it was reset.
    const { end } = await world.until('the end of the reset run', async () => {
      if ((await world.runView(node, 1)).hold) await world.api('POST', `/api/v1/nodes/${node.deviceId}/resume`, {});
      const seen = await world.run(node, 1);
      return seen.end ? seen : null;
    });
    expect(end).toBe('done');
    expect(await breachesOfOnce(db, node)).toEqual([]);
  });

  test('after the run has closed: its outcome stands, nothing is powered, NetBox is not touched', async () => {
    const node = await nodeToReprovision();
    await world.untilState(node, 'active');
    expect(await untilEnd(node, 1)).toBe('done');
    await world.until('all is written', () => world.netbox.device(node.deviceId)?.customFields?.['lifecycle_state'] === 'active' && world.netbox.device(node.deviceId)?.status === 'active');
    const before = { netbox: world.netbox.device(node.deviceId), power: node.machine.amt.counts().powerCommands.length, orders: begunOrders(node), outcome: await db.selectFrom('run').select(['outcome', 'fence', 'closed_at']).where('device_id', '=', node.deviceId).executeTakeFirstOrThrow() };
    const id = runWorkflowId(node.deviceId, 1);
    const runId = await hands.reset(id, point);
    const outcome = (await world.temporal.client.workflow.getHandle(id, runId).result()) as { end: string };
    // To its last task the run only completes once more.
    expect(outcome.end).toBe(point === 'FirstWorkflowTask' ? 'run-closed' : 'done');
    expect({ netbox: world.netbox.device(node.deviceId), power: node.machine.amt.counts().powerCommands.length, orders: begunOrders(node), outcome: await db.selectFrom('run').select(['outcome', 'fence', 'closed_at']).where('device_id', '=', node.deviceId).executeTakeFirstOrThrow() }).toEqual(before);
    expect((await world.node(node)).state).toBe('active');
  });
});
