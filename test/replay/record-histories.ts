/**
 * Plays one small world and records the history of every kind of run and of the lifecycles around them, for the replay test. Not a
 * test itself: `node scripts/record-histories.mjs` runs it, after workflow code was changed on purpose.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { INSTALLATION_WORKFLOW_ID, lifecycleId, runWorkflowId, SIGNALS, WORKFLOWS } from '../../src/contracts/messages.js';
import { reservePort } from '../support/ports.js';
import { secretsIn } from '../support/secret-scan.js';
import { startEavesdropper } from '../support/world/eavesdropper.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const FOLDER = join(process.cwd(), 'test', 'fixtures', 'histories');
/** Bytes from which a file is kept compressed. */
const COMPRESSED_FROM = 100_000;

const exec = promisify(execFile);
const files = new Map<string, string>();
let temporal: TestTemporal;

test('records the histories', async () => {
  temporal = await startTestTemporal();
  const agentPort = await reservePort();
  const ear = await startEavesdropper(agentPort);
  const world = await createWorld(temporal, {
    env: { METALFLOW_AGENT_URL: ear.url, METALFLOW_AGENT_HTTP_PORT: String(agentPort) },
    classes: { 'cloud-init-nocloud': { retireWipes: false, phoneHome: true } },
    limits: { awaitingAttestation: 10 },
  });
  try {
    await world.start();
    await Promise.all([wholeLife, cloudInit, heldAndResumed, reset, cancelledThenContinued, failed, intake].map((play) => play(world)));
    await keep(world, 'installation', INSTALLATION_WORKFLOW_ID);
    await keepAReconcile(world);
    const secrets = [...Object.values(world.secrets), ...ear.sessionTokens, ...ear.installCodes].map((value, index) => ({ name: `secret ${index}`, value }));
    for (const [name, json] of files) expect([name, secretsIn(json, secrets)]).toEqual([name, []]);
  } finally {
    await world.close();
    await ear.close();
    await temporal.close();
  }
  // Only a world that was played to its end replaces what was recorded before.
  mkdirSync(FOLDER, { recursive: true });
  for (const old of readdirSync(FOLDER)) rmSync(join(FOLDER, old));
  for (const [name, json] of files) {
    if (json.length > COMPRESSED_FROM) writeFileSync(join(FOLDER, `${name}.json.gz`), gzipSync(json, { level: 9 }));
    else writeFileSync(join(FOLDER, `${name}.json`), json);
  }
}, 400_000);

async function keep(world: World, name: string, workflowId: string, runId?: string): Promise<void> {
  const where = ['-w', workflowId, ...(runId ? ['-r', runId] : []), '--address', temporal.server.address, '-n', world.namespace];
  const { stdout } = await exec(temporal.cli, ['workflow', 'show', ...where, '--output', 'json'], { maxBuffer: 64 * 1024 * 1024 });
  // Stack traces of failed tries name the checkout.
  const { events } = JSON.parse(stdout.replaceAll(process.cwd(), '.')) as { events: object[] };
  // One event a line: a change of a history can be read in a diff.
  files.set(name, `{"workflowId":${JSON.stringify(workflowId)},"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`);
}

const keepRun = (world: World, name: string, node: WorldNode, run = 1): Promise<void> => keep(world, name, runWorkflowId(node.deviceId, run));
const runEnded = (world: World, node: WorldNode, run: number): Promise<unknown> => world.until(`run ${run} of ${node.name} ended`, async () => (await world.run(node, run)).end, 120);

async function wholeLife(world: World): Promise<void> {
  const node = await world.addNode({ name: 'whole-life' });
  const steps = [['provision', 'active', 'provision-talos'], ['reprovision', 'active', 'reprovision'], ['wipe', 'available', 'wipe'], ['retire', 'retired', 'retire-with-wipe']] as const;
  const { runId } = await world.until('its lifecycle', () => world.temporal.client.workflow.getHandle(lifecycleId(node.deviceId)).describe());
  for (const [index, [request, state, name]] of steps.entries()) {
    world.ask(node, request);
    await runEnded(world, node, index + 1);
    await world.untilState(node, state, 120);
    await keepRun(world, name, node, index + 1);
  }
  await keep(world, 'lifecycle-whole-life', lifecycleId(node.deviceId), runId);
  // NetBox tells of the status that was written last: the lifecycle of a retired device finds nothing to do.
  await world.until('the end of its lifecycle', async () => (await world.temporal.client.workflow.getHandle(lifecycleId(node.deviceId)).describe()).status.name === 'COMPLETED');
  await keep(world, 'lifecycle-nothing-to-do', lifecycleId(node.deviceId));
}

async function cloudInit(world: World): Promise<void> {
  const node = await world.addNode({ name: 'cloud-init', payload: 'cloud-init-nocloud' });
  world.ask(node, 'provision');
  await world.untilState(node, 'active', 120);
  await keepRun(world, 'provision-cloud-init', node);
  world.ask(node, 'retire');
  await world.untilState(node, 'retired', 120);
  await keepRun(world, 'retire', node, 2);
}

async function heldAndResumed(world: World): Promise<void> {
  const node = await world.addNode({ name: 'held' });
  await node.machine.amt.setPower('on');
  await node.machine.amt.setFaults({ refuse: { RequestPowerStateChange: 2 } });
  world.ask(node, 'provision');
  await world.until('held', async () => (await world.runView(node, 1)).hold, 120);
  await node.machine.amt.setFaults({ refuse: {} });
  await world.until('resume taken', async () => (await world.api('POST', `/api/v1/nodes/${node.deviceId}/resume`, {})).status === 200);
  await world.untilState(node, 'active', 120);
  await keepRun(world, 'provision-held-and-resumed', node);
  await keep(world, 'lifecycle-active', lifecycleId(node.deviceId));
}

async function reset(world: World): Promise<void> {
  const node = await world.addNode({ name: 'reset', payload: 'nixos-image' });
  node.machine.node.setBehaviours({ slowBytesPerSecond: 1_000_000 });
  world.ask(node, 'provision');
  await world.until('writing its image', async () => (await world.run(node, 1)).orders.find(({ action, state }) => action === 'write-image' && state === 'consumed'), 120);
  const workflowId = runWorkflowId(node.deviceId, 1);
  const { runId } = await world.temporal.client.workflow.getHandle(workflowId).describe();
  await world.temporal.connection.workflowService.resetWorkflowExecution({ namespace: world.namespace, workflowExecution: { workflowId, runId }, reason: 'recorded', requestId: `reset-${runId}`, workflowTaskFinishEventId: 4 as never });
  node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
  await runEnded(world, node, 1);
  await keep(world, 'provision-ended-by-a-reset', workflowId, runId);
  await keep(world, 'provision-reset', workflowId);
}

async function cancelledThenContinued(world: World): Promise<void> {
  const node = await world.addNode({ name: 'cancelled' });
  node.machine.node.setBehaviours({ neverBootsNetwork: true });
  world.ask(node, 'provision');
  await world.until('awaiting its boot', async () => (await world.runView(node, 1)).phase === 'awaiting-boot', 120);
  await world.until('cancel taken', async () => (await world.api('POST', `/api/v1/nodes/${node.deviceId}/cancel`, {})).status === 200);
  await runEnded(world, node, 1);
  await keepRun(world, 'provision-cancelled', node);

  const lifecycle = world.temporal.client.workflow.getHandle(lifecycleId(node.deviceId));
  const { runId } = await lifecycle.describe();
  // A lifecycle begins a new history after 2,000 events; each look at its device makes about a dozen.
  await world.until('the next history', async () => {
    await lifecycle.signal(SIGNALS.deviceChanged.name, { source: 'operator' });
    return (await lifecycle.describe()).runId !== runId;
  }, 200);
  await keep(world, 'lifecycle-until-continued', lifecycleId(node.deviceId), runId);
  await world.until('its first look', async () => (await lifecycle.describe()).historyLength > 10);
  await keep(world, 'lifecycle-continued', lifecycleId(node.deviceId));
}

async function failed(world: World): Promise<void> {
  const node = await world.addNode({ name: 'failed' });
  node.machine.node.setBehaviours({ wrongUuid: '4c4c4544-9999-4000-8000-000000009999' });
  world.ask(node, 'provision');
  await world.untilState(node, 'failed', 120);
  await keepRun(world, 'provision-failed', node);
}

/** The node netboots before anybody asked for anything, attests, and waits. */
async function intake(world: World): Promise<void> {
  const node = await world.addNode({ name: 'intake' });
  await world.until('its lifecycle', async () => (await world.node(node)).state === 'planned');
  await node.machine.node.powerOn('network');
  await world.until('waiting', async () => ((await world.api('GET', `/api/v1/nodes/${node.deviceId}/evidence`)).body['evidence'] as unknown[]).length > 0);
  world.ask(node, 'provision');
  await world.untilState(node, 'active', 120);
  await keepRun(world, 'provision-intake', node);
}

async function keepAReconcile(world: World): Promise<void> {
  for await (const { workflowId, runId, status } of world.temporal.client.workflow.list({ query: `WorkflowType = '${WORKFLOWS.reconcile}'` })) {
    if (status.name === 'COMPLETED') return keep(world, 'reconcile', workflowId, runId);
  }
  throw new Error('no reconcile has run');
}
