/** Nodes that die in the middle of something, never boot, or are not who they say: nothing is done twice in silence. */
import { BOOT_ATTEMPTS } from '../../src/domain/limits.js';
import { startAgentProxy, type AgentProxy } from '../support/world/agent-proxy.js';
import { begun, journal, netboxJournal, orders, powerCommands, refused, say, untilHeld, untilPhase, untilRunEnds } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const ON = 2;

let temporal: TestTemporal;
let proxy: AgentProxy;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  proxy = await startAgentProxy();
  world = await createWorld(temporal, { env: proxy.env, limits: { agentSilence: 6, activityTry: 10 } });
  await world.start();
});
afterAll(async () => {
  await world?.close();
  await proxy?.close();
  await temporal?.close();
});

/** Asked for it, the node dies where it is told to; held then, since nobody knows what it did. */
async function diesAt(node: WorldNode, dieAt: { action: string; afterBytes?: number }, request: 'provision' | 'reprovision' | 'wipe' = 'provision'): ReturnType<typeof untilHeld> {
  node.machine.node.setBehaviours({ dieAt });
  world.ask(node, request);
  return untilHeld(world, node, 'outcome_unknown');
}

/** Dies once it has taken the first wipe of a wipe run. */
async function diesInItsWipe(): Promise<{ node: WorldNode; orderId: string }> {
  const node = await world.addNode({ status: 'inventory' });
  const held = await diesAt(node, { action: 'wipe-disk', afterBytes: 1024 }, 'wipe');
  expect(held).toMatchObject({ state: 'wiping', phase: 'acting' });
  const [orderId] = begun(node, 'wipe-disk');
  return { node, orderId: orderId! };
}
/** It dies no more, and a person grants again what it was at. */
async function retriedUntilActive(node: WorldNode): Promise<void> {
  node.machine.node.setBehaviours({ dieAt: undefined });
  await say(world, node, 'retry');
  await world.untilState(node, 'active');
}
const grants = async (node: WorldNode, action: string) => (await orders(world, node)).filter((row) => row.action_name === action).map((row) => ({ grant: row.grant_no, state: row.state }));

describe('a node that dies in its wipe', () => {
  test('is held outcome_unknown, through a restart of the house; resume alone is refused with why, and retry boots anew and grants once more', async () => {
    const { node, orderId } = await diesInItsWipe();
    expect(await refused(world, node, 'resume')).toContain('say `resume --done` when the order was done, or `retry` to grant it again');
    expect(await refused(world, node, 'approve', { reason: 'why not' })).toContain('verb_refused');
    await world.house.kill();
    await world.start();
    // It comes up where it died: whatever boots now is given its disk, and no order.
    await node.machine.node.reset('network');
    await untilHeld(world, node, 'outcome_unknown');
    expect(begun(node, 'wipe-disk')).toEqual([orderId]);
    const on = powerCommands(node).filter((value) => value === ON).length;

    node.machine.node.setBehaviours({ dieAt: undefined });
    await say(world, node, 'retry');
    await world.untilState(node, 'available');
    expect(powerCommands(node).filter((value) => value === ON)).toHaveLength(on + 1);
    const [first, second] = begun(node, 'wipe-disk');
    expect([first, second !== first, begun(node, 'wipe-disk').length]).toEqual([orderId, true, 2]);
    expect(await grants(node, 'wipe-disk')).toEqual([{ grant: 1, state: 'unknown' }, { grant: 2, state: 'reported' }]);
    expect(await journal(world, node)).toContainEqual(expect.objectContaining({ by: 'tester', text: expect.stringContaining('granted again (grant 2) on retry') }));
    expect(netboxJournal(world, node)).toContainEqual(expect.stringContaining('was taken by the node and never reported'));
  });

  test('goes on when its report comes late, and a second one moves nothing (G1)', async () => {
    const { node, orderId } = await diesInItsWipe();
    const token = proxy.tokenOf(orderId);
    expect(await proxy.report(orderId, token, { result: 'succeeded', message: 'it was done after all' })).toMatchObject({ status: 200, body: { report: 'taken' } });
    await world.untilState(node, 'available');
    expect(await grants(node, 'wipe-disk')).toEqual([{ grant: 1, state: 'reported' }]);
    expect(begun(node, 'wipe-disk')).toEqual([orderId]);
    expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'done' });

    // The run is over, and the token with it.
    expect(await proxy.report(orderId, token, { result: 'failed', message: 'no, it was not' })).toMatchObject({ status: 401 });
    expect((await world.run(node, 1)).orders).toMatchObject([{ report: { result: 'succeeded' } }]);
    expect((await world.node(node)).state).toBe('available');
  });

  test('goes on by the word of a person who says that it was done', async () => {
    const { node, orderId } = await diesInItsWipe();
    await say(world, node, 'resume', { done: true });
    await world.untilState(node, 'available');
    expect(begun(node, 'wipe-disk')).toEqual([orderId]);
    expect((await world.run(node, 1)).orders).toMatchObject([{ state: 'reported', report: { message: 'tester said that it was done' } }]);
  });

  test('cancelled by a person, it is failed, since something may be destroyed; its late report moves nothing', async () => {
    const { node, orderId } = await diesInItsWipe();
    await say(world, node, 'cancel');
    await world.untilState(node, 'failed');
    expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'cancelled' });
    expect((await proxy.report(orderId, proxy.tokenOf(orderId), { result: 'succeeded', message: 'late' })).status).toBe(401);
    expect((await world.node(node)).state).toBe('failed');
  });
});

describe('a node that dies while its image is written', () => {
  test('is never written again in silence: retry grants the image once more, after a new boot', async () => {
    const node = await world.addNode();
    await diesAt(node, { action: 'write-image', afterBytes: 1024 * 1024 });
    expect(begun(node, 'write-image')).toHaveLength(1);
    await retriedUntilActive(node);
    expect(begun(node, 'write-image')).toHaveLength(2);
    expect(await grants(node, 'write-image')).toEqual([{ grant: 1, state: 'unknown' }, { grant: 2, state: 'reported' }]);
    expect((await world.run(node, 1)).bootAttempts).toBe(2);
  });

  test('after its wipe was reported, retry does not wipe again', async () => {
    const node = await world.addNode({ status: 'inventory' });
    await diesAt(node, { action: 'write-image', afterBytes: 1024 * 1024 }, 'reprovision');
    await retriedUntilActive(node);
    expect(begun(node, 'wipe-disk')).toHaveLength(1);
    expect(begun(node, 'write-image')).toHaveLength(2);
  });
});

test('a node that dies after its seed was written is booted anew on retry, and its installed system comes with the code on the disk', async () => {
  const node = await world.addNode();
  await diesAt(node, { action: 'set-next-boot' });
  await retriedUntilActive(node);
  expect(begun(node, 'write-seed')).toHaveLength(1);
  expect((await world.run(node, 1)).bootAttempts).toBe(2);
});

test('a repeated report of an order that is done is answered OK and moves nothing (G1)', async () => {
  const node = await world.addNode();
  // It dies at its third action, with two reports behind it.
  await diesAt(node, { action: 'set-next-boot' });
  const [image] = begun(node, 'write-image');
  const before = (await journal(world, node)).length;
  const again = await proxy.report(image!, proxy.tokenOf(image!), { result: 'failed', message: 'on second thoughts' });
  expect(again).toMatchObject({ status: 200, body: { report: 'repeated' } });
  expect((await world.run(node, 1)).orders).toContainEqual(expect.objectContaining({ orderId: image, state: 'reported', report: expect.objectContaining({ result: 'succeeded' }) }));
  expect((await journal(world, node)).length).toBe(before);
  await untilHeld(world, node, 'outcome_unknown');
  await say(world, node, 'cancel');
  await world.untilState(node, 'failed');
});

test('a node that took its reboot and died is not active; seen at last, it is (G3)', async () => {
  const node = await world.addNode();
  await diesAt(node, { action: 'reboot' });
  expect((await world.node(node)).state).toBe('provisioning');
  node.machine.node.setBehaviours({ dieAt: undefined });
  await node.machine.node.reset('disk');
  await world.untilState(node, 'active');
  expect(begun(node, 'write-image')).toHaveLength(1);
});

test('a stranger with the MAC of the node and another UUID is refused, and the run goes on with the right one', async () => {
  const node = await world.addNode();
  node.machine.node.setBehaviours({ wrongUuid: '4c4c4544-ffff-4000-8000-0000000000ff' });
  world.ask(node, 'provision');
  await world.until('the stranger refused', async () => {
    const { body } = await world.api('GET', `/api/v1/nodes/${node.deviceId}/evidence`);
    return (body['evidence'] as { accepted: boolean }[]).some(({ accepted }) => !accepted);
  });
  await untilPhase(world, node, 'awaiting-attestation');
  expect(await orders(world, node)).toEqual([]);
  node.machine.node.setBehaviours({ wrongUuid: undefined });
  await node.machine.node.reset('network');
  await world.untilState(node, 'active');
  expect((await world.run(node, 1)).end).toBe('done');
});

test('a node that never netboots is tried three times, each from power off, and fails as boot_not_seen', async () => {
  // For this test alone: no other node may be taken for one that does not boot.
  await world.house.stop();
  world.limit({ awaitingBoot: 8 });
  await world.start();
  const node = await world.addNode();
  node.machine.node.setBehaviours({ neverBootsNetwork: true });
  world.ask(node, 'provision');
  const ended = await untilRunEnds(world, node, 1);
  expect(ended).toMatchObject({ end: 'failed', failure: { code: 'boot_not_seen' }, bootAttempts: BOOT_ATTEMPTS, orders: [] });
  await world.untilState(node, 'failed');
  expect(powerCommands(node)).toEqual([2, 8, 2, 8, 2]);
  node.machine.node.setBehaviours({ neverBootsNetwork: undefined });
  await say(world, node, 'retry');
  await world.untilState(node, 'active');
});
