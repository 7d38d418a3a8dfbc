/** The power watch in a whole house: what a BMC reads is shown, searched, measured and told, and never acted on. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OperatorTokens } from '../../src/contracts/operator.js';
import { lifecycleId, POWER_WATCH_SCHEDULE_ID, SEARCH_ATTRIBUTES } from '../../src/contracts/messages.js';
import { metricsOfRules } from '../support/alert-rules.js';
import { addClass, journal, netboxJournal, powerCommands, replaceFile, say, untilHeld } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

let temporal: TestTemporal;
let world: World;
let node: WorldNode;
beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { env: { METALFLOW_POWER_WATCH_SECONDS: '1' }, limits: { poweringOff: 1, settling: 1, planning: 3 } });
  addClass(world, 'off-only', 'talos', () => ({ retireWipes: false }));
  await world.start();
  // Installed by somebody else, and running.
  node = await world.addNode({ status: 'active', customFields: { node_class: 'off-only' } });
  node.machine.amt.setPower('on');
});
afterAll(async () => {
  await world?.close();
  await temporal?.close();
});

/** Gauges are set a moment after the row that they are drawn from. */
const untilMetrics = (...wanted: (string | RegExp)[]): Promise<string> => world.until(`the metrics to say ${wanted.join(', ')}`, async () => {
  const text = await metrics();
  return wanted.every((one) => (typeof one === 'string' ? text.includes(one) : one.test(text))) && text;
});
async function metrics(): Promise<string> {
  const response = await fetch(`${world.house.addresses.operator}/metrics`, { headers: { authorization: `Bearer ${world.token}` } });
  expect(response.status).toBe(200);
  return response.text();
}
const untilPower = (power: string) => world.until(`${node.name} reads ${power}`, async () => ((await world.node(node)).power === power ? world.node(node) : null));
const powerAttribute = async (): Promise<unknown> => (await world.temporal.client.workflow.getHandle(lifecycleId(node.deviceId)).describe()).searchAttributes[SEARCH_ATTRIBUTES.power]?.[0];
const driftLines = async (): Promise<string[]> => (await journal(world, node)).filter(({ kind }) => kind === 'power').map(({ text }) => text);

test('an active node reads on: on its row, with the time, on its lifecycle, and in the metrics', async () => {
  const seen = await untilPower('on');
  expect(seen).toMatchObject({ state: 'active', drift: null, powerAt: expect.stringMatching(/Z$/), bmcSeenAt: expect.stringMatching(/Z$/) });
  await world.until('the search attribute', async () => (await powerAttribute()) === 'on');
  const labels = `device="${node.deviceId}",node="${node.name}"`;
  await untilMetrics(
    `metalflow_node_power{${labels},power="on"} 1`, new RegExp(`metalflow_bmc_last_seen_seconds\\{${labels}\\} 1[78]\\d{8}`),
    `metalflow_bmc_unreachable{${labels}} 0`, /metalflow_power_watch_last_walk_seconds\{site="lab"\} 1[78]\d{8}/,
  );
});

test('every metric that an alert rule names is given', async () => {
  const given = new Set([...(await metrics()).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name));
  expect(metricsOfRules().length).toBeGreaterThan(8);
  expect(metricsOfRules().filter((name) => !given.has(name))).toEqual([]);
});

test('found off it is told once, and never powered on', async () => {
  node.machine.amt.setPower('off-soft');
  const drift = { state: 'active', expected: 'on', reads: 'off' };
  await world.until('the drift', async () => ((await world.node(node)).drift?.reads === 'off' ? true : null));
  expect((await world.node(node)).drift).toEqual(drift);
  await world.until('the search attribute', async () => (await powerAttribute()) === 'off');
  // Some walks later there is one line still.
  const since = (await world.node(node)).powerAt!;
  await world.until('looked at again', async () => Date.parse((await world.node(node)).powerAt!) > Date.parse(since) + 2000);
  expect(await driftLines()).toEqual(['power drift: active should be on (its system runs), and the BMC reads off; nothing was commanded']);
  await untilMetrics(`metalflow_node_power_drift{device="${node.deviceId}",node="${node.name}",state="active",expected="on",reads="off"} 1`);
  expect(powerCommands(node)).toEqual([]);
  node.machine.amt.setPower('on');
  await world.until('it fits again', async () => (await driftLines())[0]?.startsWith('the power fits again') && (await world.node(node)).drift === null);
});

test('a BMC that falls silent is unknown, never off, and in maintenance it is left alone', async () => {
  const lines = (await driftLines()).length;
  await node.machine.amt.setFaults({ unreachable: true });
  await untilPower('unknown');
  await untilMetrics(`metalflow_bmc_unreachable{device="${node.deviceId}",node="${node.name}"} 1`);
  expect((await driftLines()).length).toBe(lines);
  await say(world, node, 'maintenance', { on: true, reason: 'a new mainboard' });
  await world.untilState(node, 'maintenance');
  await node.machine.amt.setFaults({ unreachable: false });
  await world.until('the metrics to leave it out', async () => !(await metrics()).includes(`metalflow_bmc_unreachable{device="${node.deviceId}"`));
  const requests = await world.until('whoever had begun to ask has done', async () => {
    const before = node.machine.amt.counts().requests;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return node.machine.amt.counts().requests === before ? String(before) : null;
  });
  expect(Number(requests)).toBeGreaterThan(0);
  await say(world, node, 'maintenance', { on: false, reason: 'done' });
  await untilPower('on');
  expect(powerCommands(node)).toEqual([]);
});

/** The command line itself. */
function metalflow(token: string, ...words: string[]): Promise<{ code: number; out: string }> {
  const env = { PATH: process.env['PATH'], METALFLOW_OPERATOR_URL: world.house.addresses.operator, METALFLOW_OPERATOR_TOKEN: token };
  return new Promise((resolve) => void execFile(process.execPath, ['bin/metalflow.mjs', ...words], { env, timeout: 120_000 }, (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr })));
}

test('a node whose BMC is gone is retired by an approver\'s word, from the command line, and reads unproven for ever', async () => {
  const operator = randomBytes(24).toString('base64url');
  const file = join(world.dir, 'secrets', 'operator-tokens.json');
  const { tokens } = JSON.parse(readFileSync(file, 'utf8')) as OperatorTokens;
  replaceFile(file, JSON.stringify({ tokens: [...tokens, { name: 'otto', role: 'operator', sha256: createHash('sha256').update(operator).digest('hex') }] }));
  await node.machine.amt.setFaults({ unreachable: true });
  world.ask(node, 'retire');
  await untilHeld(world, node, 'bmc_unreachable');

  const retire = ['node', 'retire', node.name, '--attest-removed'];
  expect(await metalflow(operator, ...retire, '--reason', 'scrapped')).toMatchObject({ code: 1, out: expect.stringContaining('token_role') });
  expect(await metalflow(world.token, ...retire)).toMatchObject({ code: 1, out: expect.stringContaining('reason_required') });
  expect((await world.node(node)).state).toBe('retiring');
  expect(await metalflow(world.token, ...retire, '--reason', 'scrapped, ticket 4711')).toMatchObject({ code: 0 });
  await world.untilState(node, 'retired-unproven');
  expect(await journal(world, node)).toContainEqual(expect.objectContaining({ by: 'tester', text: expect.stringContaining('ticket 4711') }));

  // Its BMC comes back and reads off, and somebody asks again: nobody makes a proof of that.
  node.machine.amt.setPower('off-soft');
  await node.machine.amt.setFaults({ unreachable: false });
  world.ask(node, 'retire');
  await world.until('NetBox is told', () => netboxJournal(world, node).some((text) => text.includes('has no open history of the device')));
  // A node that has ended so is not looked at any more; walks that come after change nothing of it.
  const told = Date.now() / 1000;
  await world.until('a walk after that', async () => Number(/metalflow_power_watch_last_walk_seconds\{site="lab"\} ([\d.]+)/.exec(await metrics())![1]) > told + 1);
  const row = await world.node(node);
  expect(row).toMatchObject({ state: 'retired-unproven', openRun: null, hold: null, drift: null });
  expect((await world.api('GET', `/api/v1/nodes/${node.deviceId}`)).body['runs']).toHaveLength(1);
  expect(world.netbox.device(node.deviceId)).toMatchObject({ status: 'offline', customFields: { lifecycle_state: 'retired-unproven' } });
  expect(powerCommands(node)).toEqual([]);
});

test('a house that is told not to watch takes its schedule away', async () => {
  const schedule = world.temporal.client.schedule.getHandle(POWER_WATCH_SCHEDULE_ID('lab'));
  expect((await schedule.describe()).spec.intervals).toEqual([expect.objectContaining({ every: 1000 })]);
  await world.house.kill();
  await world.start({ METALFLOW_POWER_WATCH_SECONDS: '0' });
  await expect(schedule.describe()).rejects.toThrow(/not found/i);
  expect(await metrics()).not.toContain('metalflow_power_watch_interval_seconds{');
});
