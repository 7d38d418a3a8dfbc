/** BMCs that lie, fall silent, belong to another machine, or are not there: nothing is inferred, and a person sees why. */
import { join } from 'node:path';
import { POWER_REQUESTS } from '../../src/domain/limits.js';
import type { Payload, Request } from '../../src/domain/runs.js';
import { runWorkflowId } from '../../src/contracts/messages.js';
import { addClass, bootOrders, journal, netboxJournal, powerCommands, refused, replaceFile, say, untilHeld, untilRunEnds } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const OFF = 8;
const OFF_ONLY = 'off-only';

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { limits: { poweringOff: 1, poweringOn: 1, settling: 1, planning: 5 } });
  addClass(world, OFF_ONLY, 'talos', () => ({ retireWipes: false }));
  await world.start();
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

/** A node that runs something metalflow did not install; a retire of it is power alone. */
async function runningNode(options: { payload?: Payload; customFields?: Record<string, unknown> } = {}): Promise<WorldNode> {
  const node = await world.addNode({ status: 'active', ...options, customFields: { node_class: OFF_ONLY, ...options.customFields } });
  node.machine.amt.setPower('on');
  return node;
}

const ask = (node: WorldNode, request: Request): void => world.ask(node, request);

/** What the Temporal page of a run says. */
async function details(node: WorldNode, run: number): Promise<string> {
  const { currentDetails } = await world.temporal.client.workflow.getHandle(runWorkflowId(node.deviceId, run)).query<{ currentDetails: string }>('__temporal_workflow_metadata');
  return currentDetails;
}

describe('a BMC that accepts off and stays on', () => {
  test('is never taken for off: held bmc_still_on after two commands, and the run goes on by itself when the BMC reads off', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ neverOff: true });
    ask(node, 'retire');
    const held = await untilHeld(world, node, 'bmc_still_on');
    expect(held).toMatchObject({ state: 'retiring', power: 'on' });
    expect(powerCommands(node)).toEqual(Array(POWER_REQUESTS).fill(OFF));
    expect(held.hold.message).toBe('asked off, still reads on');
    expect(await details(node, 1)).toContain('`bmc_still_on` asked off, still reads on');
    expect((await world.runView(node, 1)).hold).toMatchObject({ code: 'bmc_still_on', verb: 'resume' });
    await world.until('NetBox told', () => netboxJournal(world, node).some((text) => text.includes('asked off, still reads on')));
    expect(world.netbox.device(node.deviceId).status).toBe('decommissioning');

    node.machine.amt.setPower('off-soft');
    await world.untilState(node, 'retired');
    expect(powerCommands(node)).toHaveLength(POWER_REQUESTS);
    expect(world.netbox.device(node.deviceId).status).toBe('offline');
  });

  test('is asked once more at each resume, and by nobody else', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ neverOff: true });
    ask(node, 'retire');
    await untilHeld(world, node, 'bmc_still_on');
    const before = powerCommands(node).length;
    await say(world, node, 'resume');
    await world.until('asked again', () => powerCommands(node).length > before);
    await untilHeld(world, node, 'bmc_still_on');
    expect(powerCommands(node)).toHaveLength(before + 1);
    node.machine.amt.setPower('off-hard');
    await world.untilState(node, 'retired');
  });

  test('in hibernate it is not off (7 is neither 6 nor 8)', async () => {
    const node = await runningNode();
    node.machine.amt.setPower('hibernate');
    await node.machine.amt.setFaults({ neverOff: true });
    ask(node, 'retire');
    const held = await untilHeld(world, node, 'bmc_still_on');
    expect(held.hold.message).toBe('asked off, still reads hibernate');
    expect(held).toMatchObject({ state: 'retiring', power: 'sleeping' });
    node.machine.amt.setPower('off-soft');
    await world.untilState(node, 'retired');
  });
});

describe('a BMC of another machine', () => {
  test('gets no power command and no boot order; fixed, resume goes on', async () => {
    const node = await world.addNode();
    await node.machine.amt.setFaults({ otherUuid: '4c4c4544-ffff-4000-8000-00000000ffff' });
    ask(node, 'provision');
    const held = await untilHeld(world, node, 'bmc_is_another_machine');
    expect(held.hold.message).toContain('4c4c4544-ffff-4000-8000-00000000ffff');
    expect(held.hold.message).toContain(node.systemUuid);
    expect([powerCommands(node), bootOrders(node)]).toEqual([[], []]);
    // Not taken yet: clearing the field would still take it back.
    expect(world.netbox.device(node.deviceId).customFields['desired_action']).toBe('provision');

    await say(world, node, 'resume');
    await world.until('looked again', async () => (await journal(world, node)).filter(({ text }) => text.startsWith('held (bmc_is_another_machine)')).length === 2);
    expect([powerCommands(node), bootOrders(node)]).toEqual([[], []]);

    await node.machine.amt.setFaults({ otherUuid: null });
    await say(world, node, 'resume');
    await world.untilState(node, 'active');
  });

  test('whose device had a wrong system_uuid is compared anew on resume, once NetBox is fixed', async () => {
    const node = await world.addNode({ customFields: { system_uuid: '4c4c4544-ffff-4000-8000-00000000ffff' } });
    ask(node, 'provision');
    await untilHeld(world, node, 'bmc_is_another_machine');
    world.netbox.patchDevice(node.deviceId, { custom_fields: { system_uuid: node.systemUuid } });
    await say(world, node, 'resume');
    await world.untilState(node, 'active');
    expect((await journal(world, node)).map(({ text }) => text)).toContainEqual(expect.stringMatching(/NetBox names the machine anew: .*before: .*ffff/));
  });

  test('cancelled while it is held, the run takes its request along: it is not begun again', async () => {
    const node = await world.addNode();
    await node.machine.amt.setFaults({ otherUuid: '4c4c4544-ffff-4000-8000-00000000ffff' });
    ask(node, 'provision');
    await untilHeld(world, node, 'bmc_is_another_machine');
    await say(world, node, 'cancel');
    await world.untilState(node, 'planned');
    expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'cancelled' });
    expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'planned', customFields: { desired_action: null } });
    const { body } = await world.api('GET', `/api/v1/nodes/${node.deviceId}`);
    expect(body['runs']).toHaveLength(1);
  });

  test('that came between the off and its two reads proves nothing: not retired', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ neverOff: true });
    ask(node, 'retire');
    await untilHeld(world, node, 'bmc_still_on');
    await node.machine.amt.setFaults({ otherUuid: '4c4c4544-ffff-4000-8000-00000000ffff' });
    node.machine.amt.setPower('off-soft');
    const held = await untilHeld(world, node, 'bmc_is_another_machine');
    expect(held.state).toBe('retiring');
    expect(powerCommands(node)).toHaveLength(POWER_REQUESTS);
    await node.machine.amt.setFaults({ otherUuid: null });
    await say(world, node, 'resume');
    await world.untilState(node, 'retired');
    // That it read off all the while neither ended the hold nor began it again.
    expect((await journal(world, node)).filter(({ text }) => text.startsWith('held (bmc_is_another_machine)'))).toHaveLength(1);
  });
});

describe('a machine UUID that nobody can compare', () => {
  test.each([
    ['the BMC says none', { fault: '00000000-0000-0000-0000-000000000000', customFields: {} }],
    ["the device's system_uuid is empty", { fault: null, customFields: { system_uuid: null } }],
  ])('%s: held for approve, which needs a reason and is recorded', async (_, { fault, customFields }) => {
    const node = await runningNode({ customFields });
    await node.machine.amt.setFaults({ otherUuid: fault });
    ask(node, 'retire');
    await untilHeld(world, node, 'bmc_uuid_unreadable');
    expect([powerCommands(node), bootOrders(node)]).toEqual([[], []]);
    expect(await refused(world, node, 'resume')).toContain('bmc_uuid_unreadable is ended by approve');
    expect(await refused(world, node, 'approve')).toContain('reason_required');
    await say(world, node, 'approve', { reason: 'I followed the cable' });
    await world.untilState(node, 'retired');
    expect(await journal(world, node)).toContainEqual(expect.objectContaining({ by: 'tester', text: expect.stringContaining('was approved as this device') }));
  });
});

describe('a BMC that does not answer', () => {
  test('is unknown, never off: nothing is sent, and resume goes on when it answers', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ unreachable: true });
    ask(node, 'retire');
    const held = await untilHeld(world, node, 'bmc_unreachable');
    expect(held.state).toBe('retiring');
    expect(held.power).not.toBe('off');
    await node.machine.amt.setFaults({ unreachable: false });
    expect(powerCommands(node)).toEqual([]);
    await say(world, node, 'resume');
    await world.untilState(node, 'retired');
  });

  test('after an off that it accepted is settling, then unknown: held, and retired only when it is read off', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ neverOff: true });
    ask(node, 'retire');
    await untilHeld(world, node, 'bmc_still_on');
    await node.machine.amt.setFaults({ unreachable: true });
    await say(world, node, 'resume');
    const held = await untilHeld(world, node, 'bmc_unreachable');
    expect(held).toMatchObject({ state: 'retiring', power: 'unknown' });
    node.machine.amt.setPower('off-soft');
    expect((await world.node(node)).state).toBe('retiring');
    await node.machine.amt.setFaults({ unreachable: false });
    await world.untilState(node, 'retired');
    expect(powerCommands(node)).toHaveLength(POWER_REQUESTS);
  });

  test('and never will: only an approver who says that the machine is gone, and why, closes it, unproven for ever', async () => {
    const node = await runningNode();
    await node.machine.amt.setFaults({ unreachable: true });
    ask(node, 'retire');
    await untilHeld(world, node, 'bmc_unreachable');
    expect(await refused(world, node, 'approve', { attestRemoved: true })).toContain('reason_required');
    expect(await refused(world, node, 'approve', { reason: 'let it go' })).toContain('attest');
    await say(world, node, 'approve', { attestRemoved: true, reason: 'scrapped, ticket 4711' });
    await world.untilState(node, 'retired-unproven');
    expect(await untilRunEnds(world, node, 1)).toMatchObject({ end: 'done', failure: { code: 'bmc_unreachable' } });
    expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'offline', customFields: { lifecycle_state: 'retired-unproven' } });
    expect(await journal(world, node)).toContainEqual(expect.objectContaining({ by: 'tester', text: expect.stringContaining('ticket 4711') }));
  });
});

test('a wrong password is named with its secret; once the file is right, resume goes on', async () => {
  const node = await runningNode();
  const file = join(world.dir, 'secrets', 'bmc-amt.json');
  replaceFile(file, JSON.stringify({ username: 'admin', password: 'not-this-one' }));
  ask(node, 'retire');
  const held = await untilHeld(world, node, 'bmc_auth_failed');
  expect(held.hold.message).toContain('bmc-amt');
  expect(world.houseLog()).not.toContain('not-this-one');
  expect(powerCommands(node)).toEqual([]);
  replaceFile(file, JSON.stringify({ username: 'admin', password: 'P@ssw0rd1' }));
  await say(world, node, 'resume');
  await world.untilState(node, 'retired');
});

describe('a node without a BMC', () => {
  test('is provisioned by a person who is told each step, and retired only when an approver says that it is gone', async () => {
    const node = await world.addNode({ customFields: { bmc_type: 'manual' } });
    const task = async (wanted: RegExp): Promise<void> => {
      const { hold } = await untilHeld(world, node, 'bmc_manual_task');
      expect(hold.message).toMatch(wanted);
    };
    ask(node, 'provision');
    await task(new RegExp(`power ${node.name} off`));
    await say(world, node, 'resume');
    await world.until('the next task', async () => (await world.node(node)).phase === 'powering-on');
    await task(new RegExp(`power ${node.name} on.*from the network`));
    await node.machine.node.powerOn('network');
    await say(world, node, 'resume');
    await world.untilState(node, 'active');
    expect(node.machine.amt.counts().requests).toBe(0);

    ask(node, 'retire');
    await task(new RegExp(`power ${node.name} off`));
    await node.machine.node.powerOff();
    await say(world, node, 'resume');
    await world.until('the next task', async () => (await world.node(node)).phase === 'powering-on');
    await task(new RegExp(`power ${node.name} on.*from the network`));
    await node.machine.node.powerOn('network');
    await say(world, node, 'resume');
    await world.until('the last off', async () => (await world.node(node)).phase === 'final-power-off');
    await task(new RegExp(`power ${node.name} off`));
    await node.machine.node.powerOff();
    await say(world, node, 'resume');
    // A person's word that it is off is not the BMC's.
    await untilHeld(world, node, 'off_unprovable');
    expect(await refused(world, node, 'approve', { reason: 'it is off' })).toContain('attest');
    expect((await world.node(node)).state).toBe('retiring');
    await say(world, node, 'approve', { attestRemoved: true, reason: 'carried out of the building' });
    await world.untilState(node, 'retired-unproven');
  });
});
