/** No secret is kept by anything that people, backups or a Temporal server can read. */
import { createPrivateKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lifecycleId, runWorkflowId } from '../../src/contracts/messages.js';
import { hashSecret } from '../../src/store/ids.js';
import { reservePort } from '../support/ports.js';
import { secretsIn, wordsOf, type Secret } from '../support/secret-scan.js';
import { startEavesdropper, type Eavesdropper } from '../support/world/eavesdropper.js';
import { keptByTemporal } from '../support/world/histories.js';
import { untilPhase } from '../support/world/looks.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const PAYLOADS = ['talos', 'nixos-image', 'alpine-image', 'cloud-init-nocloud'] as const;

let temporal: TestTemporal;
let world: World;
let ear: Eavesdropper;
let nodes: WorldNode[];
/** What was there only while it happened: scripts served, pending activities with their heartbeats, what pages said. */
const passing = { scripts: '', temporal: '', pages: '' };

beforeAll(async () => {
  temporal = await startTestTemporal();
  const agentPort = await reservePort();
  ear = await startEavesdropper(agentPort);
  world = await createWorld(temporal, {
    env: { METALFLOW_AGENT_URL: ear.url, METALFLOW_AGENT_HTTP_PORT: String(agentPort) },
    // Its code travels in a URL, where logs find it most easily.
    classes: { 'cloud-init-nocloud': { phoneHome: true } },
    limits: { awaitingAttestation: 30 },
  });
  await world.start();
  nodes = await Promise.all(PAYLOADS.map((payload) => world.addNode({ payload, name: `secret-${payload}` })));
  const stranger = await world.addNode({ name: 'secret-stranger' });
  stranger.machine.node.setBehaviours({ wrongUuid: '4c4c4544-9999-4000-8000-000000009999' });
  for (const node of [...nodes, stranger]) {
    node.machine.node.setBehaviours({ slowBytesPerSecond: 500_000 });
    world.ask(node, 'provision');
  }
  // Slow until each was looked at while its agent acts.
  await Promise.all(nodes.map(async (node) => {
    await untilPhase(world, node, 'acting');
    await look(node, 1);
    node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
  }));
  await Promise.all(nodes.map((node) => world.untilState(node, 'active')));
  await world.untilState(stranger, 'failed');
  world.ask(nodes[0]!, 'retire');
  await world.untilState(nodes[0]!, 'retired');
  nodes.push(stranger);
});
afterAll(async () => {
  await world?.close();
  await ear?.close();
  await temporal?.close();
});

/** Keeps what is to be seen of a run while it goes on. */
async function look(node: WorldNode, run: number): Promise<void> {
  const { workflowService } = world.temporal.connection;
  passing.scripts += await (await fetch(`${world.house.addresses.bootHttp}/ipxe/script/${node.mac}/auto.ipxe`)).text();
  passing.temporal += wordsOf(await workflowService.describeWorkflowExecution({ namespace: world.namespace, execution: { workflowId: runWorkflowId(node.deviceId, run) } }));
  for (const workflowId of [lifecycleId(node.deviceId), runWorkflowId(node.deviceId, run)]) {
    passing.pages += JSON.stringify(await world.temporal.client.workflow.getHandle(workflowId).query('__temporal_workflow_metadata'));
  }
}

/** Of the attestation key, the number that makes it private is the secret; its PEM holds the public half too. */
const privateHalf = (pem: string): Buffer => Buffer.from(createPrivateKey(pem).export({ format: 'jwk' }).d!, 'base64url');

const secrets = (): Secret[] => [
  ...Object.entries(world.secrets).map(([name, value]) => ({ name, value })),
  ...[...ear.sessionTokens].map((value, index) => ({ name: `session token ${index}`, value })),
  ...[...ear.installCodes].map((value, index) => ({ name: `install code ${index}`, value })),
  ...nodes.map((node) => ({ name: `attestation key of ${node.name}`, value: privateHalf(readFileSync(join(world.dir, 'nodes', node.name, 'ak.pem'), 'utf8')) })),
];

/** Every answer that a GET of the operator plane gives. */
async function everyAnswer(): Promise<string> {
  const { body } = await world.api('GET', '/api/v1/openapi.json');
  const paths = Object.entries(body['paths'] as Record<string, object>).filter(([, operations]) => 'get' in operations).map(([path]) => path);
  const filled = paths.flatMap((path) => nodes.map((node) => path.replace(/\{(id|device)\}/, node.deviceId).replace('{run}', '1').replace(/\/plan$/, '/plan?kind=retire')));
  const answers = await Promise.all([...new Set(filled)].map(async (path) => {
    const response = await fetch(`${world.house.addresses.operator}${path}`, { headers: { authorization: `Bearer ${world.token}` } });
    return `${path} ${response.status} ${await response.text()}`;
  }));
  expect(answers.length).toBeGreaterThan(10);
  return answers.join('\n');
}

async function storeBytes(): Promise<Buffer> {
  const files = ['metalflow.db', 'metalflow.db-wal'].map((name) => join(world.dir, name)).filter(existsSync);
  return Buffer.concat(files.map((file) => readFileSync(file)));
}

const MEDIA: Readonly<Record<string, () => Promise<Buffer | string>>> = {
  'histories, memos and search attributes': async () => (await keptByTemporal(world)).map(wordsOf).join('\n'),
  'heartbeats of pending activities': async () => passing.temporal,
  'current details': async () => passing.pages,
  'log at debug level': async () => world.houseLog(),
  'iPXE scripts': async () => passing.scripts,
  store: storeBytes,
  'NetBox fields, journal and hooks': async () => JSON.stringify([nodes.map((node) => [world.netbox.device(node.deviceId), world.netbox.journal(node.deviceId)]), world.netbox.deliveries()]),
  'answers of the operator plane': everyAnswer,
};

test('the world had secrets of every kind to lose', () => {
  expect(ear.sessionTokens.size).toBeGreaterThanOrEqual(4);
  expect(ear.installCodes.size).toBeGreaterThanOrEqual(3);
  expect(passing.scripts).toContain('#!ipxe');
  expect(passing.temporal).toContain('keepPermission');
  expect(world.houseLog()).toContain('"level":20');
});

test.each(Object.keys(MEDIA))('no secret is in: %s', async (medium) => {
  const bytes = await MEDIA[medium]!();
  expect(bytes.length).toBeGreaterThan(200);
  expect(secretsIn(bytes, secrets())).toEqual([]);
});

test('of tokens and codes the store has the hash', async () => {
  const bytes = await storeBytes();
  for (const secret of [...ear.sessionTokens, ...ear.installCodes]) expect(bytes.includes(hashSecret(secret))).toBe(true);
});

test("the scan finds what a person's words, an agent's progress and a node's name carry into each medium", async () => {
  const canary = { name: 'canary', value: 'Zq7-canary-of-the-scan-x9' };
  const node = await world.addNode({ name: canary.value });
  nodes.push(node);
  node.machine.node.setBehaviours({ slowBytesPerSecond: 200_000 });
  world.ask(node, 'provision');
  const order = await world.until('an order taken', async () => (await world.run(node, 1)).orders.find(({ state, action }) => state === 'consumed' && action === 'write-image'));
  await world.api('POST', `/api/v1/nodes/${node.deviceId}/hold`, { reason: canary.value });
  const token = [...ear.sessionTokens].at(-1)!;
  await world.until('its progress heartbeaten', async () => {
    await fetch(`${ear.url}/v1/orders/${order.orderId}/progress`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: JSON.stringify({ done: 1, total: 2, unit: 'bytes', note: canary.value }) });
    await look(node, 1);
    return secretsIn(passing.temporal.slice(passing.temporal.lastIndexOf('heartbeatDetails')), [canary]).length > 0;
  });
  node.machine.node.setBehaviours({ slowBytesPerSecond: undefined });
  await world.until('the run held', async () => (await world.runView(node, 1)).hold);
  const found = await Promise.all(Object.entries(MEDIA).map(async ([medium, read]) => [medium, secretsIn(await read(), [canary])]));
  // A script names devices by their id, on purpose: of it, the scan is shown a copy with the canary in it.
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(Object.keys(MEDIA).map((medium) => [medium, medium === 'iPXE scripts' ? [] : ['canary']])));
  expect(secretsIn(`${passing.scripts}\nkernel x code=${canary.value}`, [canary])).toEqual(['canary']);
});

const SPELLINGS: [string, (text: string) => string][] = [
  ['as it is', (text) => text],
  ['in hex', (text) => Buffer.from(text).toString('hex')],
  ...[0, 1, 2].map((offset): [string, (text: string) => string] => [`in base64, ${offset} bytes on`, (text) => Buffer.from(`${'x'.repeat(offset)}${text} and more`).toString('base64')]),
  ['in a URL', encodeURIComponent],
];
test.each(SPELLINGS)('the scan knows a secret %s', (_, spell) => {
  expect(secretsIn(`before ${spell('P@ssw0rd/of-a BMC')} after`, [{ name: 'password', value: 'P@ssw0rd/of-a BMC' }])).toEqual(['password']);
});
