import type { AttestationReport } from '../../src/contracts/agent-api.js';
import { runAgent, type AgentDeps, type AgentEnd } from '../../src/agent/agent.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { createTestNode, quickSleep, type TestNode } from '../support/agent-node.js';
import { AgentPlane } from '../support/agent-plane.js';

let plane: AgentPlane;
let node: TestNode;
let sleep: ReturnType<typeof quickSleep>;
let told: AbortController;

beforeEach(async () => {
  plane = await new AgentPlane().start();
  node = createTestNode();
  await node.addDisk('S1', Buffer.alloc(4096), { wwn: 'eui.0025385971b0c1d2' });
  sleep = quickSleep();
  told = new AbortController();
});
afterEach(async () => {
  told.abort();
  await plane.stop();
  node.remove();
});
const start = (extra: Partial<AgentDeps> = {}): Promise<AgentEnd> => runAgent({ api: plane.url, machine: node.machine, log: silentLogger(), sleep, signal: told.signal, requestTimeoutMs: 60_000, ...extra });

it('signs the very bytes of its report over the nonce of the plane, with NIC, neighbour and disks in it', async () => {
  const agent = start();
  await plane.until(() => plane.of('next').length > 0, 'a question with a token');
  told.abort();
  await agent;
  const report = JSON.parse(Buffer.from((plane.of('attest')[0]!.body as { report: string }).report, 'base64').toString('utf8')) as AttestationReport;
  expect(report).toMatchObject({
    version: 1, systemUuid: node.machine.systemUuid, bootMac: node.machine.bootMac, lldpFrame: '0207040cdb000102030405',
    disks: [{ serial: 'S1', wwn: 'eui.0025385971b0c1d2', sizeBytes: 4096, bus: 'virtio' }],
  });
  // The plane of the tests verifies the signature and the nonce; only then is there a token.
  expect(plane.of('next')[0]!.token).toBe('token-1');
});

it('answers the credential of the plane with what its TPM makes of it', async () => {
  const machine = { ...node.machine, endorsementKey: { public: Buffer.from('ek'), activate: async (credential: Buffer) => Buffer.from(`opened ${credential.toString()}`) } };
  plane.script('hello', (_, response) => plane.json(response, { challengeId: 'c', nonce: Buffer.alloc(32, 7).toString('base64'), credential: Buffer.from('blob').toString('base64'), expiresAt: '2030-01-01T00:00:00Z' }));
  const agent = start({ machine });
  await plane.until(() => plane.of('attest').length > 0, 'a report');
  told.abort();
  await agent;
  expect(plane.of('hello')[0]!.body).toMatchObject({ ekPublic: Buffer.from('ek').toString('base64') });
  expect(plane.of('attest')[0]!.body).toMatchObject({ secret: Buffer.from('opened blob').toString('base64') });
});

it('is refused five times, 30 s apart, then tries once more after a longer pause, and never exits', async () => {
  plane.script('attest', 403, 403, 403, 403, 403);
  const agent = start();
  await plane.until(() => plane.of('next').length > 0, 'an attestation in the second round');
  told.abort();
  await expect(agent).resolves.toBe('told-to');
  expect(plane.of('attest')).toHaveLength(6);
  expect(sleep.asked.slice(0, 5)).toEqual([30_000, 30_000, 30_000, 30_000, 300_000]);
});

it('asks a plane that is away at the same pace until it is back', async () => {
  plane.script('attest', 503, 'cut', 503, 'cut', 503, 'cut', 403);
  const agent = start();
  await plane.until(() => plane.of('next').length > 0, 'an attestation');
  told.abort();
  await agent;
  expect(sleep.asked.slice(0, 7)).toEqual(Array(7).fill(30_000));
});

it('waits as long as the plane says when it is refused', async () => {
  plane.script('attest', (_, response) => plane.error(response, 403, 'attestation_refused', { retryAfterSeconds: 90 }));
  const agent = start();
  await plane.until(() => plane.of('next').length > 0, 'an attestation');
  told.abort();
  await agent;
  expect(sleep.asked[0]).toBe(90_000);
});

it('outlives a machine that cannot make its report', async () => {
  let asked = 0;
  const disks = async (): ReturnType<TestNode['machine']['disks']> => {
    asked += 1;
    if (asked === 1) throw new Error('lsblk failed');
    return node.machine.disks();
  };
  const agent = start({ machine: { ...node.machine, disks } });
  await plane.until(() => plane.of('next').length > 0, 'an attestation');
  told.abort();
  await expect(agent).resolves.toBe('told-to');
  expect(asked).toBe(2);
});

it('ends at once when it is told to while it waits for its next try', async () => {
  plane.script('hello', 500);
  const agent = start({ sleep: (_, signal) => new Promise((resolve) => {
    signal!.addEventListener('abort', () => resolve());
    told.abort();
  }) });
  await expect(agent).resolves.toBe('told-to');
});
