/** Whatever comes in on any port of the real house, or from Temporal's side: it is refused by name, changes nothing, and the house goes on. */
import { createHmac } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ERRORS, isErrorCode } from '../../src/domain/errors.js';
import { lifecycleId, runWorkflowId, SIGNALS, VERBS } from '../../src/contracts/messages.js';
import { dribble, halfOpen, send, STRANGER, type BadRequest, type HalfOpen } from '../support/bad-http.js';
import { seededRandom } from '../support/random.js';
import { storeDigest } from '../support/world/store-digest.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';
import { createWorld, type World, type WorldNode } from '../support/world/world.js';

const exec = promisify(execFile);
/** Megabytes that the house may grow by; what it was sent in all is several times that. */
const MOST_GROWTH = 250;
const UDP_DATAGRAMS = 5000;

let temporal: TestTemporal;
let world: World;
let node: WorldNode;
let pid: number;
let megabytesBefore: number;
const open: HalfOpen[] = [];

const megabytes = (): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

beforeAll(async () => {
  temporal = await startTestTemporal();
  world = await createWorld(temporal, { limits: { poweringOff: 2, settling: 1 } });
  ({ pid } = (await world.start()).addresses);
  node = await world.addNode();
  world.ask(node, 'provision');
  await world.untilState(node, 'active');
  await untilIdle();
  megabytesBefore = megabytes();
});
afterEach(() => {
  expect(world.house.isRunning()).toBe(true);
});
afterAll(async () => {
  open.forEach(({ close }) => close());
  await world?.close();
  await temporal?.close();
});

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const garbage = (seed: number, bytes: number): Buffer => {
  const random = seededRandom(seed);
  return Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)));
};
const BODIES: Readonly<Record<string, Buffer | string>> = {
  'JSON of 100,000 levels': deep(100_000),
  'JSON of 40 levels': deep(40),
  'a body of 3 MB': `"${'x'.repeat(3 * 1024 * 1024)}"`,
  'a list': '[1,2,3]',
  'a number': '1e999',
  'null': 'null',
  'a text': '"hold"',
  'fields of other types': JSON.stringify({ reason: 5, systemUuid: [], bootMac: {}, akPublic: null, challengeId: true, report: 1, signature: [], done: 'x', total: {}, result: 'maybe', action: 'explode', event: 7, data: 'x' }),
  'a key that reaches a prototype': '{"__proto__":{"role":"approver"},"reason":"x"}',
  'half a JSON': '{"reason": "x',
  'random bytes': garbage(1, 4096),
  'no UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
};

/** Every door that takes a body, and one that takes none, at each port. */
function doors(): { base: string; request: Omit<BadRequest, 'body'>; signs?: boolean }[] {
  const { operator, agent, metadata, bootHttp } = world.house.addresses;
  const json = { 'content-type': 'application/json' };
  const person = { ...json, authorization: `Bearer ${world.token}` };
  return [
    { base: operator, request: { method: 'POST', path: '/webhooks/netbox', headers: json }, signs: true },
    ...[...VERBS, 'request'].map((verb) => ({ base: operator, request: { method: 'POST', path: `/api/v1/nodes/${node.deviceId}/${verb}`, headers: person } })),
    ...['/v1/attest/hello', '/v1/attest/report'].map((path) => ({ base: agent, request: { method: 'POST', path, headers: json } })),
    { base: agent, request: { method: 'POST', path: '/v1/orders/x/report', headers: { ...json, authorization: 'Bearer nobody' } } },
    { base: metadata, request: { method: 'POST', path: '/latest/meta-data/hostname', headers: json } },
    { base: bootHttp, request: { method: 'POST', path: `/ipxe/script/${node.mac}/auto.ipxe`, headers: json } },
  ];
}

/** Null stands for a connection that was closed while the body was still on its way. */
function expectNamedRefusal(answer: { status: number; text: string } | null, what: string): void {
  if (answer === null) return;
  const { code } = JSON.parse(answer.text) as { code: string };
  expect({ what, code, known: isErrorCode(code) }).toEqual({ what, code, known: true });
  expect({ what, status: answer.status }).toEqual({ what, status: ERRORS[code as keyof typeof ERRORS].http });
  expect({ what, code }).not.toEqual({ what, code: 'internal' });
}

/** The idle house writes nothing of itself; a refused verb leaves its line of audit. */
async function unchanged(work: () => Promise<void>): Promise<void> {
  const db = await world.db();
  const before = await storeDigest(db, ['audit']);
  await work();
  expect(await storeDigest(db, ['audit'])).toEqual(before);
}

/** What the provision leaves to be written (its last words, NetBox's journal) is written. */
async function untilIdle(): Promise<void> {
  const db = await world.db();
  await world.until('the store to stay as it is', async () => {
    const before = JSON.stringify(await storeDigest(db, []));
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return JSON.stringify(await storeDigest(db, [])) === before;
  });
}

async function goodRequestsAreServed(): Promise<void> {
  const { agent, metadata, bootHttp } = world.house.addresses;
  expect((await world.node(node)).state).toBe('active');
  for (const url of [`${agent}/readyz`, `${metadata}/`, `${bootHttp}/readyz`, `${bootHttp}/ipxe/script/${node.mac}/auto.ipxe`]) expect([url, (await fetch(url)).status]).toEqual([url, 200]);
}

test('others are served while 200 sockets have said half a request, and some drip', async () => {
  const { operator, agent, metadata, bootHttp } = world.house.addresses;
  for (const base of [operator, agent, metadata, bootHttp]) open.push(await halfOpen(base, 50));
  const drips = [operator, agent, metadata, bootHttp].map((base) => dribble(base, [...'POST /v1/attest/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a"'], { pauseMs: 20, waitMs: 2500 }));
  await goodRequestsAreServed();
  expect(await Promise.all(drips)).toHaveLength(4);
  await goodRequestsAreServed();
});

test.each(Object.keys(BODIES))('%s is refused at every door, and changes nothing', async (name) => {
  const body = BODIES[name]!;
  await unchanged(async () => {
    for (const { base, request, signs } of doors()) {
      const signature: Record<string, string> = signs ? { 'x-hook-signature': createHmac('sha512', world.secrets.webhookSecret).update(body).digest('hex') } : {};
      const answer = await send(base, { ...request, headers: { ...request.headers, ...signature }, body });
      // Verbs that need no reason take an empty body for none; `null` is one.
      if (name === 'null' && answer?.status === 409) continue;
      expect({ door: request.path, refused: answer === null || answer.status >= 400 }).toEqual({ door: request.path, refused: true });
      expectNamedRefusal(answer, request.path);
    }
  });
  await goodRequestsAreServed();
});

const PATHS = ['/%', '/%00', '/..%2f..%2fetc%2fpasswd', '/assets/../../secrets/bmc-amt.json', '/assets/%2e%2e%2f%2e%2e%2fsecrets%2fbmc-amt.json', '/ipxe/script/not-a-mac/auto.ipxe', '/ipxe/binary/..%2f..%2fmetalflow.db', `/${'a'.repeat(5000)}`, '/api/v1/runs/-1/0', '/v1/orders/%F0%9F%92%A9/consume', '/latest/meta-data/__proto__', '/v1/seed/x?code=y'];
test('a path that leads nowhere, or out of its folder, is refused by name on every port', async () => {
  const { operator, agent, metadata, bootHttp } = world.house.addresses;
  let refused = 0;
  await unchanged(async () => {
    for (const base of [operator, agent, metadata, bootHttp]) {
      for (const path of PATHS) {
        const answer = await send(base, { method: 'GET', path });
        expect([path, answer!.status >= 400]).toEqual([path, true]);
        expectNamedRefusal(answer, path);
        refused++;
      }
    }
  });
  expect(refused).toBe(4 * PATHS.length);
  await goodRequestsAreServed();
});

const RAW: Readonly<Record<string, (Buffer | string)[]>> = {
  'random bytes': [garbage(2, 2000)],
  'a TLS hello': [Buffer.from('16030100c8010000c40303', 'hex'), garbage(3, 200)],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'headers without end': [`GET / HTTP/1.1\r\nHost: x\r\n${'X-A: b\r\n'.repeat(20_000)}`],
  'two lengths': ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde'],
  'a length and chunks': ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  'a broken chunk': ['POST /v1/attest/hello HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n'],
};
test.each(Object.keys(RAW))('%s on a port of HTTP is answered from the error table or not at all', async (name) => {
  const { operator, agent, metadata, bootHttp } = world.house.addresses;
  await unchanged(async () => {
    const answers = await Promise.all([operator, agent, metadata, bootHttp].map((base) => dribble(base, RAW[name]!)));
    expect(answers).toHaveLength(4);
    for (const answer of answers.filter(Boolean)) {
      const [, status, text] = /^HTTP\/1\.1 (\d+) [^]*?\r\n\r\n([^]*)$/.exec(answer)!;
      expectNamedRefusal({ status: Number(status), text: text! }, name);
    }
  });
  await goodRequestsAreServed();
});

/** A read request of TFTP (RFC 1350) with some of its bytes changed. */
function nearlyRrq(random: () => number): Buffer {
  const packet = Buffer.from(`\0\x01${node.mac}/ipxe.efi\0octet\0blksize\0${Math.floor(random() * 70_000)}\0tsize\0${'9'.repeat(Math.floor(random() * 30))}\0`, 'latin1');
  for (let changes = Math.floor(random() * 6); changes > 0; changes--) packet[Math.floor(random() * packet.length)] = Math.floor(random() * 256);
  return packet;
}
test(`${UDP_DATAGRAMS} datagrams of rubbish on TFTP and syslog change nothing and stop nothing`, async () => {
  const random = seededRandom(42);
  const { tftpPort, syslogPort } = world.house.addresses;
  const socket = createSocket('udp4');
  socket.on('message', () => undefined);
  await new Promise<void>((resolve) => socket.bind(0, STRANGER, resolve));
  const post = (bytes: Buffer, port: number): Promise<void> => new Promise((resolve) => socket.send(bytes, port, '127.0.0.1', () => resolve()));
  await unchanged(async () => {
    for (let count = 0; count < UDP_DATAGRAMS; count++) {
      const bytes = random() < 0.3 ? nearlyRrq(random) : garbage(count, Math.floor(random() * 1400));
      await post(bytes, random() < 0.5 ? tftpPort : syslogPort);
    }
  });
  await goodRequestsAreServed();
  socket.close();
});

describe('from the side of Temporal', () => {
  let held: WorldNode;
  const cli = (...args: string[]) => exec(temporal.cli, ['workflow', ...args, '--address', temporal.server.address, '-n', world.namespace], { timeout: 120_000 });
  const handle = (workflowId: string) => world.temporal.client.workflow.getHandle(workflowId);
  /** A view is what a person sees; the clock of a hold is part of it, and does not move. */
  const views = async () => [await world.lifecycleView(held), await world.runView(held, 1)];
  const failedTasks = async (workflowId: string) => (await handle(workflowId).fetchHistory()).events!.filter((event) => event.workflowTaskFailedEventAttributes);
  const ids = () => [lifecycleId(held.deviceId), runWorkflowId(held.deviceId, 1)];

  beforeAll(async () => {
    held = await world.addNode();
    await held.machine.amt.setPower('on');
    await held.machine.amt.setFaults({ neverOff: true });
    world.ask(held, 'provision');
    await world.until('held', async () => (await world.runView(held, 1)).hold);
    await world.until('its lifecycle to know the power that the run has read', async () => (await world.lifecycleView(held)).power === (await world.runView(held, 1)).power);
  });

  const JUNK: Readonly<Record<string, unknown>> = { 'another shape': { x: 1 }, null: null, 'a text': 'attested', 'a list': [1, [2]], 'a long text': 'x'.repeat(100_000), 'ids of other types': { bootAttempt: 7, attestationId: {}, accepted: 'yes', run: '1', orderId: [], by: 9, request: 'explode' }, 'JSON of 2,000 levels': JSON.parse(deep(2000)) };
  test.each(Object.keys(JUNK))('signals of every name that carry %s are ignored', async (name) => {
    const before = await views();
    for (const workflowId of ids()) for (const signal of [...Object.keys(SIGNALS).filter((one) => one !== 'deviceChanged'), 'noSuchSignal']) await handle(workflowId).signal(signal, JUNK[name]);
    expect(await views()).toEqual(before);
    for (const workflowId of ids()) expect(await failedTasks(workflowId)).toEqual([]);
  });

  test('a signal by the temporal program is ignored with a logged reason', async () => {
    await cli('signal', '-w', ids()[1]!, '--name', 'attested', '--input', '{"x":1}');
    await world.until('the reason in the log', () => /a signal that does not fit is ignored/.test(world.houseLog()) && world.houseLog().includes('attestationId'));
    expect(await failedTasks(ids()[1]!)).toEqual([]);
  });

  test('an update by the temporal program without runId is refused, and says which it must be', async () => {
    const before = await views();
    const refused = await cli('update', 'execute', '-w', ids()[1]!, '--name', 'cancel', '--input', '{"by":"someone"}').catch((error: { stderr: string }) => error);
    expect(refused).toHaveProperty('stderr', expect.stringContaining('runId must be'));
    expect(await views()).toEqual(before);
  });

  test.each(Object.keys(JUNK))('updates of every name that carry %s are refused', async (name) => {
    const before = await views();
    let refused = 0;
    for (const workflowId of ids()) {
      for (const verb of [...VERBS, 'noSuchUpdate']) {
        await expect(handle(workflowId).executeUpdate(verb, { args: [JUNK[name]] })).rejects.toThrow();
        refused++;
      }
    }
    expect(refused).toBe(2 * (VERBS.length + 1));
    expect(await views()).toEqual(before);
    for (const workflowId of ids()) expect(await failedTasks(workflowId)).toEqual([]);
  });

  test.each([['an encoding that nobody knows', 'binary/from-elsewhere', 'x'], ['JSON that is none', 'json/plain', '{"x":'], ['no encoding at all', '', 'x']])('signals whose payload is %s stop no workflow', async (_, encoding, data) => {
    const { workflowService } = world.temporal.connection;
    const metadata: Record<string, Uint8Array> = encoding ? { encoding: Buffer.from(encoding) } : {};
    const before = await views();
    for (const workflowId of ids()) await workflowService.signalWorkflowExecution({ namespace: world.namespace, workflowExecution: { workflowId }, signalName: 'attested', input: { payloads: [{ metadata, data: Buffer.from(data) }] } });
    expect(await views()).toEqual(before);
    for (const workflowId of ids()) expect(await failedTasks(workflowId)).toEqual([]);
  });
});

test('half requests are given up, memory is bounded, and the house provisions the next node', async () => {
  const db = await world.db();
  await world.until('the half requests given up', () => open.every(({ left }) => left() === 0));
  expect(megabytes() - megabytesBefore).toBeLessThan(MOST_GROWTH);
  const next = await world.addNode({ payload: 'nixos-image' });
  world.ask(next, 'provision');
  await world.untilState(next, 'active');
  expect((await db.selectFrom('run').select('outcome').where('device_id', '=', next.deviceId).execute()).map(({ outcome }) => JSON.parse(outcome!))).toMatchObject([{ end: 'done' }]);
});
