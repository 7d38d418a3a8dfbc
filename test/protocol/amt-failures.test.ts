/** What goes wrong with AMTs in the field, and what merely looks like one: one clear code each, and no command twice. */
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createAmtBmc } from '../../src/bmc/amt/client.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { silentLogger } from '../../src/telemetry/log.js';
import type { AmtFaults } from '../../src/simulator/amt/faults.js';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import type { Timeouts } from '../../src/bmc/http-once.js';
import { CREDENTIALS, noSocketsLeft, ROOMY, startAmtBench, type AmtBench } from '../support/amt.js';
import { outOfTime } from '../support/held-time.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  // While the servers still listen: it is the driver that has to hang up.
  await noSocketsLeft();
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function start(options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> {
  const bench = await startAmtBench({ initialPower: 'on', ...options });
  closers.push(() => bench.close());
  return bench;
}

/** A server that is no AMT: it answers every connection with these bytes, or never. */
async function startOther(answer: string | null, timeouts: Partial<Timeouts> = {}): Promise<Bmc> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => void (answer !== null && socket.end(answer)));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const bmc = createAmtBmc({
    address: { type: 'amt', host: '127.0.0.1', port: (server.address() as AddressInfo).port }, credentials: CREDENTIALS, secret: 'bmc-amt', log: silentLogger(), timeouts: { ...ROOMY, ...timeouts },
  });
  closers.push(() => new Promise((resolve) => void server.close(resolve)), () => bmc.close());
  return bmc;
}

describe('a sleeping ME (failure mode 5)', () => {
  test.each([1, 2])('that drops the first %i connections is read all the same', async (sleepFirstN) => {
    const { amt, open } = await start({ faults: { sleepFirstN } });
    expect(await open().observePower()).toEqual({ kind: 'read', power: 'on' });
    expect(amt.counts().calls).toHaveLength(1);
  });
  test('is woken before a command goes out, which is then sent once', async () => {
    const { amt, open } = await start({ faults: { sleepFirstN: 2 } });
    expect(await open().powerOff()).toEqual({ kind: 'accepted' });
    expect(amt.counts().byValue).toEqual({ 8: 1 });
  });
  test('that never wakes is unreachable after a bounded number of tries', async () => {
    const { amt, open } = await start({ faults: { sleepFirstN: Infinity } });
    const bmc = open();
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'not-sent' });
    expect(amt.counts().requests).toBe(0);
  });
  test('that drops reads with credentials is asked again, three times in all', async () => {
    const { amt, open } = await start({ faults: { dropBefore: 2 } });
    expect(await open().observePower()).toEqual({ kind: 'read', power: 'on' });
    await amt.setFaults({ dropBefore: 3 });
    expect(await open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: expect.stringContaining('closed') });
  });
});

describe('a power command whose answer is lost (failure mode 10)', () => {
  test('is unknown and is not sent again, though it took effect', async () => {
    const { amt, machine, open } = await start({ faults: { acceptThenDrop: 1 } });
    expect(await open().powerOff()).toMatchObject({ kind: 'unknown' });
    await amt.settled();
    expect([amt.counts().byValue, machine]).toEqual([{ 8: 1 }, ['off']]);
  });
  test('is unknown and is not sent again, though it had none', async () => {
    const { amt, machine, open } = await start({ faults: { dropBefore: 1 } });
    expect(await open().powerOff()).toMatchObject({ kind: 'unknown' });
    expect([amt.counts().byValue, machine]).toEqual([{ 8: 1 }, []]);
  });
  test('is unknown when the time runs out', async () => {
    const { amt, open } = await start();
    const bmc = open({ timeouts: { requestMs: 150 } });
    await bmc.observePower();
    await amt.setFaults({ silent: true });
    expect(await outOfTime(150, () => bmc.powerOff(), () => amt.counts().byValue[8] === 1)).toMatchObject({ kind: 'unknown', why: 'no whole answer within 150 ms' });
    expect(amt.counts().byValue).toEqual({ 8: 1 });
  });
  test('surely did nothing when nobody listened', async () => {
    const { amt, open } = await start();
    const bmc = open();
    await bmc.observePower();
    await amt.setFaults({ unreachable: true });
    expect(await bmc.powerOff()).toEqual({ kind: 'not-sent', why: 'connection refused' });
    expect(amt.counts().byValue).toEqual({});
  });
  test.each(['truncated-xml', 'html', 'huge'] as const)('is unknown when the answer is spoilt (%s): the BMC had it', async (answerAs) => {
    const { amt, open } = await start({ faults: { answerAs } });
    expect(await open().powerOff()).toMatchObject({ kind: 'unknown' });
    expect(amt.counts().byValue).toEqual({ 8: 1 });
  });
  test('is unknown when the answer drips until the time runs out: the BMC had it', async () => {
    const { amt, open } = await start({ faults: { answerAs: 'slow-drip' } });
    const bmc = open({ timeouts: { requestMs: 400 } });
    expect(await outOfTime(400, () => bmc.powerOff(), () => amt.counts().byValue[8] === 1)).toMatchObject({ kind: 'unknown' });
    expect(amt.counts().byValue).toEqual({ 8: 1 });
  });
});

describe('a second change while one settles (failure mode 6)', () => {
  test('is refused with 2 while the old state still shows, and not sent by us on our own', async () => {
    const { amt, open } = await start({ faults: { lagReads: 2 } });
    const bmc = open();
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', details: { value: '2' } });
    expect([await bmc.observePower(), await bmc.observePower(), await bmc.observePower()].map((reading) => reading.kind === 'read' && reading.power)).toEqual(['on', 'on', 'off-soft']);
    expect(amt.counts().byValue).toEqual({ 8: 2 });
  });
  test('lag goes by the clock too', async () => {
    let at = Date.parse('2030-01-01T00:00:00Z');
    const { open } = await start({ faults: { lagMs: 10_000 }, now: () => new Date(at) });
    const bmc = open();
    await bmc.powerOff();
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    at += 10_000;
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  });
  test('the same command twice is refused, not an error of ours (failure mode 3)', async () => {
    const { open } = await start();
    const bmc = open();
    await bmc.powerOff();
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { value: '2' } });
  });
});

describe('credentials', () => {
  test('that are wrong are one clear error after two tries: no storm, no lock-out', async () => {
    const { amt, open } = await start();
    const bmc = open({ password: 'wrong' });
    expect(await bmc.observePower()).toEqual({ kind: 'unknown', code: 'bmc_auth_failed', why: 'it refuses the credentials of bmc-amt' });
    expect(amt.counts()).toMatchObject({ requests: 3, refusedLogins: 2 });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed' });
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed', details: { secret: 'bmc-amt' } });
    expect(amt.counts().byValue).toEqual({});
  });
  test.each([1, 2, 3])('survive a nonce that AMT forgets after %i uses, without a command twice', async (nonceResetEvery) => {
    const { amt, open } = await start({ faults: { nonceResetEvery } });
    const bmc = open();
    for (let round = 0; round < 3; round += 1) {
      expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
      expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    }
    expect(amt.counts().byValue).toEqual({ 2: 3, 8: 3 });
  });
});

describe('an answer that is none', () => {
  test.each([
    ['truncated-xml', 'no well-formed XML'],
    ['html', 'DOCTYPE'],
    ['huge', 'larger than 262144 bytes'],
  ] as [AmtFaults['answerAs'], string][])('%s is bmc_answer_invalid', async (answerAs, why) => {
    const { open } = await start({ faults: { answerAs } });
    const bmc = open();
    expect(await bmc.observePower()).toEqual({ kind: 'unknown', code: 'bmc_answer_invalid', why: expect.stringContaining(why) });
    expect(await bmc.machineUuid()).toMatchObject({ kind: 'unknown', code: 'bmc_answer_invalid' });
    expect(await bmc.identify()).toBeNull();
    expect(await bmc.capabilities()).toBeNull();
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_answer_invalid' });
  });
  test('a slow drip ends at the deadline of the request', async () => {
    const { open } = await start({ faults: { answerAs: 'slow-drip' } });
    expect(await open({ timeouts: { requestMs: 200, tries: 1 } }).observePower()).toEqual({ kind: 'unknown', code: 'bmc_unreachable', why: 'no whole answer within 200 ms' });
  });
  test('all tries together end at the deadline of the call', async () => {
    const { open } = await start({ faults: { silent: true } });
    expect(await open({ timeouts: { requestMs: 60_000, methodMs: 250, tries: 100 } }).observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: expect.stringContaining('given up') });
  });

  test.each([
    ['a web page', 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello', 'bmc_answer_invalid', 'HTTP 200'],
    ['a redirect', 'HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n', 'bmc_answer_invalid', 'HTTP 302'],
    ['a malformed challenge (A1)', 'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest foo\r\nContent-Length: 0\r\n\r\n', 'bmc_answer_invalid', 'realm or nonce|parsed'],
    ['no challenge', 'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n', 'bmc_answer_invalid', 'without WWW-Authenticate'],
    ['an SSH server', 'SSH-2.0-OpenSSH_9.6\r\n', 'bmc_answer_invalid', 'no HTTP'],
    ['endless headers', `HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(5000)}\r\n`, 'bmc_answer_invalid', 'no HTTP'],
    ['silence and an end', '', 'bmc_unreachable', 'closed'],
  ])('%s is told from an AMT, and gets no credentials and no command', async (_name, bytes, code, why) => {
    const bmc = await startOther(bytes);
    expect(await bmc.observePower()).toEqual({ kind: 'unknown', code, why: expect.stringMatching(why) });
    expect(await bmc.powerOff()).toMatchObject({ kind: code === 'bmc_unreachable' ? 'not-sent' : 'refused' });
  });
  test('a server that accepts and says nothing is bounded', async () => {
    const bmc = await startOther(null, { requestMs: 100 });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'not-sent', why: expect.stringMatching(/no whole answer within 100 ms|given up/) });
  });
});

test('one Bmc has one request under way at a time, whatever is asked of it at once', async () => {
  const { amt, open } = await start({ faults: { answerDelayMs: 5 } });
  const bmc = open();
  const [power, uuid, off, again] = await Promise.all([bmc.observePower(), bmc.machineUuid(), bmc.powerOff(), bmc.observePower()]);
  expect([power, uuid, off, again]).toMatchObject([{ kind: 'read', power: 'on' }, { kind: 'read' }, { kind: 'accepted' }, { kind: 'read', power: 'off-soft' }]);
  expect(amt.counts().maxInFlight).toBe(1);
});
