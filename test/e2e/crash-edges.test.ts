/** Deaths of the house that a provision and a retirement do not pass: at its first start, around a node that waits, and in between. */
import { INSTALLATION_WORKFLOW_ID } from '../../src/contracts/messages.js';
import { beginLife, countBefore, CRASH_WORLD, dieAndGoOn, expectRunDoneOnce, startAndDie, untilState } from '../support/world/crash-life.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World } from '../support/world/world.js';

/** Of the agent; short, so that a house can be away for longer. */
const SILENCE = 12;
/** A disk of 20 MiB takes more than a minute, and its agent has news every four seconds. */
const SLOW = 250_000;

let temporal: TestTemporal;
let world: World;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, CRASH_WORLD);
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

test('store and Temporal belong together though the house dies twice while it links them', async () => {
  const db = await world.db();
  const read = () => db.selectFrom('installation').select(['installation_id', 'status', 'epoch']).executeTakeFirstOrThrow();
  await startAndDie(world, 'installation-begun');
  const { installation_id: id } = await read();
  await startAndDie(world, 'installation-linked');
  await world.start();
  expect(await read()).toEqual({ installation_id: id, status: 'confirmed', epoch: 0 });
  const { memo } = await world.temporal.client.workflow.getHandle(INSTALLATION_WORKFLOW_ID).describe();
  expect(memo).toMatchObject({ installationId: id });
});

test.each(['deliver-signal-lifecycle:after-effect', 'adoptIntakeAttempt:before', 'adoptIntakeAttempt:before-answer'])('a node that waits in the menu is installed without a power cycle though the house dies at %s', async (at) => {
  await world.house?.kill();
  const life = await beginLife(world);
  const { node } = life;
  const before = countBefore(life);
  /** A person powers the node on, once the house knows it: its blank disk leaves it to the network. */
  const boots = async () => {
    await untilState(life, 'planned');
    node.machine.amt.setPower('on');
  };
  const waits = () => world.netbox.journal(node.deviceId).some(({ comments }) => /attested and waits/.test(comments));
  const diesAsItAttests = at.startsWith('deliver');
  if (diesAsItAttests) await startAndDie(world, at, boots);
  await world.start();
  if (!diesAsItAttests) await boots();
  await world.until('the node to wait', waits);
  await dieAndGoOn(life, 'provision', diesAsItAttests ? null : { at });
  await expectRunDoneOnce(life, 'provision', before, null, { sent: { on: 0, off: 0 } });
});

test('a boot script that died with the house is booted again, from power off, and the run ends as it would have', async () => {
  const life = await beginLife(world);
  const before = countBefore(life);
  const row = { at: 'boot-seen-before-answer', mayBootAgain: 'the script was lost with the house', limits: { awaitingAttestation: 20 } };
  await dieAndGoOn(life, 'provision', row);
  await expectRunDoneOnce(life, 'provision', before, row);
});

test('a retired node that is declared again becomes active though the house dies while it is taken up', async () => {
  const life = await beginLife(world);
  const { node } = life;
  for (const request of ['provision', 'retire'] as const) {
    const before = countBefore(life);
    await dieAndGoOn(life, request, null);
    await expectRunDoneOnce(life, request, before, null);
  }
  const before = countBefore(life);
  world.netbox.patchDevice(node.deviceId, { status: 'planned' });
  await dieAndGoOn(life, 'provision', { at: 'lookAtDevice:registered' });
  await expectRunDoneOnce(life, 'provision', before, null, { run: 3 });
});

test('a wipe goes on while the house is away for longer than an agent may be silent, and nobody holds it against the agent', async () => {
  const life = await beginLife(world);
  const { node, db } = life;
  await dieAndGoOn(life, 'provision', null);
  await untilState(life, 'active');
  const before = countBefore(life);
  node.machine.node.setBehaviours({ slowBytesPerSecond: SLOW });
  world.limit({ agentSilence: SILENCE });
  await startAndDie(world, 'order-progress-before-commit', () => world.ask(node, 'retire'));
  const lastSign = async () => Date.parse((await db.selectFrom('agent_order').select('last_sign_at').where('device_id', '=', node.deviceId).where('run', '=', 2).executeTakeFirstOrThrow()).last_sign_at!);
  const lastHeard = await lastSign();
  await world.until('the silence to have lasted', () => Date.now() - lastHeard > SILENCE * 1000 + 500);
  await world.start();
  await world.until('the agent to be heard again, at the same work', async () => (await lastSign()) > lastHeard);
  node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
  await expectRunDoneOnce(life, 'retire', before, null);
  const holds = await db.selectFrom('journal').select('text').where('device_id', '=', node.deviceId).where('kind', '=', 'hold').execute();
  expect(holds).toEqual([]);
});
