/** Runs and lifecycles ended by hand, with `temporal workflow terminate`, `cancel` and `reset`: whatever is ended, what was open is closed and somebody writes it down. */
import { createHash, randomBytes } from 'node:crypto';
import { lifecycleId, runWorkflowId } from '../../src/contracts/messages.js';
import type { Db } from '../../src/store/index.js';
import { fetchWithPackage } from '../support/tftp-client.js';
import { handsOn, type Hands } from '../support/world/hands.js';
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

/** A wipe that takes half a minute: whoever looks, or does something by hand, finds it under way. */
const SLOW = { slowBytesPerSecond: 1024 * 1024 } as const;

async function nodeToReprovision(behaviours: Parameters<WorldNode['machine']['node']['setBehaviours']>[0] = {}): Promise<WorldNode> {
  const node = await world.addNode({ status: 'active' });
  node.machine.node.setBehaviours(behaviours);
  world.ask(node, 'reprovision');
  return node;
}

const script = async ({ mac }: WorldNode): Promise<string> => (await fetch(`${world.house.addresses.bootHttp}/ipxe/script/${mac}/auto.ipxe`)).text();
const bootsNetwork = async (node: WorldNode): Promise<boolean> => (await script(node)).includes('/assets/');
const binary = (node: WorldNode): Promise<string> => fetchWithPackage(world.house.addresses.tftpPort, `${node.mac}/ipxe.efi`).then(() => 'served', (error: Error) => error.message);

const untilDoing = (node: WorldNode, action: string): Promise<true> => world.until(`${node.name} does ${action}`, () => isDoing(node, action) || null);
const untilPhase = (node: WorldNode, run: number, phase: string): Promise<true> => world.until(`run ${run} is ${phase}`, async () => (await world.runView(node, run)).phase === phase || null);

async function stolenToken(node: WorldNode): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  const own = await db.selectFrom('session').selectAll().where('device_id', '=', node.deviceId).where('revoked_at', 'is', null).executeTakeFirstOrThrow();
  await db.insertInto('session').values({ ...own, token_hash: createHash('sha256').update(token).digest('hex') }).execute();
  return token;
}
const nextOrder = async (token: string): Promise<number> => (await fetch(`${world.house.addresses.agent}/v1/orders/next?wait=0`, { headers: { authorization: `Bearer ${token}` } })).status;

const outcomeOf = async (node: WorldNode, run: number): Promise<{ end: string; failure: { code: string } | null } | null> => {
  const { outcome } = await db.selectFrom('run').select('outcome').where('device_id', '=', node.deviceId).where('number', '=', run).executeTakeFirstOrThrow();
  return outcome ? JSON.parse(outcome) : null;
};
const openOrders = async (node: WorldNode): Promise<number> => (await db.selectFrom('agent_order').select('id').where('device_id', '=', node.deviceId).where('state', 'in', ['queued', 'consumed']).execute()).length;

test('a run terminated while it waits: its permission ends with it, and the gate answers boot disk', async () => {
  const node = await nodeToReprovision({ silentAgent: true });
  await untilPhase(node, 1, 'awaiting-attestation');
  expect(await bootsNetwork(node)).toBe(true);
  expect(await binary(node)).toBe('served');
  await hands.terminate(runWorkflowId(node.deviceId, 1));
  await world.until('the gate answers boot disk', async () => !(await bootsNetwork(node)));
  expect(await binary(node)).toMatch(/netboot-not-allowed/);
  await world.untilState(node, 'failed');
  expect(await outcomeOf(node, 1)).toMatchObject({ end: 'failed', failure: { code: 'run_terminated' } });
});

test('a run terminated during a wipe: orders are cancelled, tokens revoked, the node is failed, and `retry` brings it up', async () => {
  const node = await nodeToReprovision(SLOW);
  await untilDoing(node, 'wipe-disk');
  const token = await stolenToken(node);
  expect(await nextOrder(token)).toBe(204);
  const [interrupted] = begunOrders(node, 'wipe-disk');
  await hands.terminate(runWorkflowId(node.deviceId, 1));
  await world.untilState(node, 'failed');

  expect(await outcomeOf(node, 1)).toMatchObject({ end: 'failed', failure: { code: 'run_terminated' }, destroyed: true });
  expect(await openOrders(node)).toBe(0);
  expect(await nextOrder(token)).toBe(401);
  await world.until('NetBox says failed', () => world.netbox.device(node.deviceId)?.status === 'failed');
  node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/retry`, {})).toMatchObject({ status: 200 });
  await world.untilState(node, 'active');
  expect(await outcomeOf(node, 2)).toMatchObject({ end: 'done' });
  expect(begunOrders(node).filter((order) => order === interrupted)).toHaveLength(1);
  expect(await breachesOfOnce(db, node)).toEqual([]);
});

type End = readonly [how: string, end: (node: WorldNode) => Promise<unknown>];
const LIFECYCLE_ENDS: readonly End[] = [
  ['terminated, and the reconcile starts another', (node) => hands.terminate(lifecycleId(node.deviceId))],
  ['terminated, and a webhook starts another', async (node) => {
    await hands.terminate(lifecycleId(node.deviceId));
    world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
  }],
  ['cancelled', (node) => hands.cancel(lifecycleId(node.deviceId))],
  ['reset to its first task', (node) => hands.reset(lifecycleId(node.deviceId), 'FirstWorkflowTask')],
  ['reset to its last task', (node) => hands.reset(lifecycleId(node.deviceId), 'LastWorkflowTask')],
];
test.each(LIFECYCLE_ENDS)('a lifecycle %s: the run goes on, and the lifecycle that takes it up settles its end', async (_how, end) => {
  const node = await nodeToReprovision(SLOW);
  await untilDoing(node, 'wipe-disk');
  const run = await hands.runIdOf(runWorkflowId(node.deviceId, 1));
  const former = await hands.runIdOf(lifecycleId(node.deviceId));
  await end(node);
  await world.until('another lifecycle watches the run', async () => (await hands.runIdOf(lifecycleId(node.deviceId))) !== former && (await world.lifecycleView(node)).openRun?.run === 1);
  node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });

  await world.untilState(node, 'active');
  expect(await hands.runIdOf(runWorkflowId(node.deviceId, 1))).toBe(run);
  expect(await outcomeOf(node, 1)).toMatchObject({ end: 'done' });
  await world.until('NetBox says active', () => world.netbox.device(node.deviceId)?.status === 'active');
  expect(await breachesOfOnce(db, node)).toEqual([]);
});

test('what was said to a lifecycle is not said again by its reset', async () => {
  const node = await world.addNode({ status: 'active' });
  world.netbox.patchDevice(node.deviceId, { custom_fields: { root_disk: node.serial } });
  await world.untilState(node, 'active');
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/hold`, { reason: 'look at the fan' })).toMatchObject({ status: 200 });
  await world.untilState(node, 'held');
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/resume`, {})).toMatchObject({ status: 200 });
  await world.untilState(node, 'active');
  const runId = await hands.reset(lifecycleId(node.deviceId), 'FirstWorkflowTask');
  await world.until('the reset lifecycle looks', async () => (await world.lifecycleView(node)).state === 'active');
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/maintenance`, { on: true, reason: 'fan' })).toMatchObject({ status: 200 });
  await world.untilState(node, 'maintenance');
  expect(await world.api('POST', `/api/v1/nodes/${node.deviceId}/maintenance`, { on: false, reason: 'fan' })).toMatchObject({ status: 200 });
  await world.untilState(node, 'active');
  const held = await db.selectFrom('journal').select('text').where('device_id', '=', node.deviceId).where('kind', '=', 'state').where('text', 'like', '%→ held%').execute();
  expect(held).toHaveLength(1);
  expect(await hands.runIdOf(lifecycleId(node.deviceId))).toBe(runId);
});

test.each([
  ['while it waits', { silentAgent: true }, 'awaiting-attestation', 'active'],
  ['during a wipe', SLOW, 'acting', 'failed'],
] as const)('a run cancelled in Temporal %s is disarmed, and its outcome is cancelled', async (_when, behaviours, phase, state) => {
  const node = await nodeToReprovision(behaviours);
  if (phase === 'acting') await untilDoing(node, 'wipe-disk');
  else await untilPhase(node, 1, phase);
  await hands.cancel(runWorkflowId(node.deviceId, 1));
  await world.untilState(node, state);
  expect(await outcomeOf(node, 1)).toMatchObject({ end: 'cancelled', failure: { code: 'run_cancelled' }, by: 'temporal' });
  expect(await bootsNetwork(node)).toBe(false);
  expect(await openOrders(node)).toBe(0);
});

test('run and lifecycle terminated while the house is down: closed and written after its start', async () => {
  const node = await nodeToReprovision(SLOW);
  await untilDoing(node, 'wipe-disk');
  await world.house.kill();
  await hands.terminate(lifecycleId(node.deviceId));
  await hands.terminate(runWorkflowId(node.deviceId, 1));
  await world.start();
  await world.untilState(node, 'failed');
  expect(await outcomeOf(node, 1)).toMatchObject({ end: 'failed', failure: { code: 'run_terminated' } });
  expect(await openOrders(node)).toBe(0);
  expect(await bootsNetwork(node)).toBe(false);
  await world.until('NetBox says failed', () => world.netbox.device(node.deviceId)?.status === 'failed');
});
