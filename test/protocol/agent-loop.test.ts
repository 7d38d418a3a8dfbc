import type { Order } from '../../src/contracts/order.js';
import { runAgent, type AgentDeps, type AgentEnd } from '../../src/agent/agent.js';
import type { DiskHandle } from '../../src/contracts/agent-machine.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { createTestNode, quickSleep, type TestNode } from '../support/agent-node.js';
import { AgentPlane, orderOf, type Scripted } from '../support/agent-plane.js';

const MIB = 1024 * 1024;
let plane: AgentPlane;
let node: TestNode;
let sleep: ReturnType<typeof quickSleep>;
let told: AbortController;

beforeEach(async () => {
  plane = await new AgentPlane().start();
  node = createTestNode();
  await node.addDisk('S1', Buffer.alloc(4 * MIB, 0xaa));
  sleep = quickSleep();
  told = new AbortController();
});
afterEach(async () => {
  told.abort();
  await plane.stop();
  node.remove();
});

const start = (extra: Partial<AgentDeps> = {}): Promise<AgentEnd> => runAgent({ api: plane.url, machine: node.machine, log: silentLogger(), sleep, signal: told.signal, requestTimeoutMs: 60_000, ...extra });
const wipe = (extra: Partial<Order> = {}): Order => orderOf({ name: 'wipe-disk', disk: { serial: 'S1' } }, extra);
const wipes = (): number => node.journal().filter(({ action, what }) => action === 'wipe-disk' && what === 'started').length;

/** Writes of the disk wait, from the third on, until the agent said that it stops: so the stop is seen at a chunk, however fast the machine is. */
async function slowDisk(): Promise<Pick<AgentDeps, 'log'>> {
  let stopping = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    stopping = resolve;
  });
  const [disk] = await node.machine.disks();
  const open = disk!.open.bind(disk);
  const slowOpen = async (): Promise<DiskHandle> => {
    const handle = await open();
    let writes = 0;
    return {
      ...handle,
      write: async (position, bytes) => {
        writes += 1;
        if (writes > 2) await stopped;
        await handle.write(position, bytes);
      },
    };
  };
  Object.assign(disk!, { open: slowOpen });
  const warn = (_: unknown, message: string): void => {
    if (message === 'stopping the work') stopping();
  };
  return { log: Object.assign(silentLogger(), { warn }) };
}

async function endsWhenTold(agent: Promise<AgentEnd>): Promise<void> {
  told.abort();
  await expect(agent).resolves.toBe('told-to');
}

describe('an order from the plane', () => {
  it('is consumed, done and reported once, with its evidence', async () => {
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.of('consume')).toHaveLength(1);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'succeeded', evidence: { serial: 'S1', method: 'zero', bytes: 4 * MIB } });
    expect(node.journal().map(({ orderId, what, disk }) => ({ orderId, what, disk }))).toEqual([
      { orderId: order.orderId, what: 'started', disk: 'S1' },
      { orderId: order.orderId, what: 'done', disk: 'S1' },
    ]);
    expect(node.contentOf('S1').equals(Buffer.alloc(4 * MIB))).toBe(true);
  });

  it('is not touched before its consume was answered', async () => {
    plane.script('consume', 409);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.until(() => plane.of('consume').length >= 1 && plane.of('next').length >= 2, 'a second question');
    expect(plane.of('consume')[0]!.orderId).toBe(order.orderId);
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    // The refused consume began nothing; the one that was answered did.
    expect(wipes()).toBe(1);
  });

  it('is consumed again when the answer of the consume got lost, and is done once', async () => {
    const order = wipe();
    plane.orders.push(order);
    // Taken behind the answer that got lost: from then on the ledger offers it no more.
    plane.script('consume', (_, response) => {
      plane.orders.splice(plane.orders.indexOf(order), 1);
      response.destroy();
    }, 503, (_, response) => plane.json(response, { orderId: order.orderId, consumedAt: '2030-01-01T00:00:00Z', deadlineAt: '2030-01-01T01:00:00Z' }));
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.of('consume')).toHaveLength(3);
    expect(wipes()).toBe(1);
  });

  it('is left alone when an earlier agent process began it (G1)', async () => {
    const order = wipe();
    node.machine.journal({ at: '2026-11-30T00:00:00Z', orderId: order.orderId, action: 'wipe-disk', what: 'started' });
    plane.orders.push(order);
    const agent = start();
    await plane.until(() => plane.of('next').length >= 3, 'three questions');
    await endsWhenTold(agent);
    expect(plane.of('consume')).toHaveLength(0);
    expect(plane.of('report')).toHaveLength(0);
    expect(node.contentOf('S1').equals(Buffer.alloc(4 * MIB, 0xaa))).toBe(true);
  });

  it('that comes again after its report gets the same report again and is not done again (G1)', async () => {
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    plane.script('next', (_, response) => plane.json(response, order));
    await plane.until(() => plane.of('report').length === 2, 'a second report');
    await endsWhenTold(agent);
    expect(plane.of('report').map(({ text }) => text)).toEqual([plane.of('report')[0]!.text, plane.of('report')[0]!.text]);
    expect(wipes()).toBe(1);
  });

  it('for a disk that is not there fails by name and the agent asks on', async () => {
    const order = orderOf({ name: 'wipe-disk', disk: { serial: 'OTHER' } });
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'failed', code: 'disk_none_matches' });
  });
});

describe('progress', () => {
  it('stop ends the work between two chunks, and the report says so', async () => {
    plane.script('progress', (_, response) => plane.json(response, { go: 'stop' }));
    const order = wipe();
    plane.orders.push(order);
    const agent = start(await slowDisk());
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'failed', message: expect.stringContaining('stopped') });
    expect(node.journal().map(({ what }) => what)).toEqual(['started', 'stopped']);
  });

  it.each<[string, Scripted]>([['the token was revoked', 401], ['the plane knows no such order', 404]])('stops the work when %s', async (_, answer) => {
    plane.script('progress', answer);
    const order = wipe();
    plane.orders.push(order);
    const agent = start(await slowDisk());
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(node.journal().map(({ what }) => what)).toEqual(['started', 'stopped']);
  });

  it('goes on working while the plane cannot be reached', async () => {
    plane.script('progress', 503, 'cut', 500);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'succeeded' });
  });

  it('past the order\'s own limit ends the work as timed out', async () => {
    const order = wipe({ timeoutSeconds: 20 });
    plane.orders.push(order);
    const agent = start(await slowDisk());
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'timed-out', code: 'action_timed_out' });
  });
});

describe('report errors (G5)', () => {
  it.each<[string, Scripted[], number]>([
    ['503 twice, then OK', [503, 503], 3],
    ['500 once, then OK', [500], 2],
    ['a broken connection, then OK', ['cut'], 2],
    ['429, then OK', [429], 2],
  ])('%s: the same report is sent again until OK and the work is not done again', async (_, answers, sends) => {
    plane.script('report', ...answers);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    const bodies = plane.of('report', order.orderId).map(({ text }) => text);
    expect(bodies).toHaveLength(sends);
    expect(new Set(bodies).size).toBe(1);
    expect(wipes()).toBe(1);
  });

  it('no answer in time: the same report is sent again until it is answered, and the work is not done again', async () => {
    plane.script('report', 'silence');
    const order = wipe();
    plane.orders.push(order);
    // The limit is that of every request, and a machine may be too slow for it more than once.
    const agent = start({ requestTimeoutMs: 300 });
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    const bodies = plane.of('report', order.orderId).map(({ text }) => text);
    expect(bodies.length).toBeGreaterThanOrEqual(2);
    expect(new Set(bodies).size).toBe(1);
    expect(wipes()).toBe(1);
  });

  it.each([404, 400, 409, 422])('%d: the report is not sent again, and the agent goes back to asking for work', async (status) => {
    plane.script('report', status);
    const [first, second] = [wipe(), wipe()];
    plane.orders.push(first);
    plane.script('next', (_, response) => plane.json(response, first), (_, response) => plane.json(response, second));
    plane.orders.push(second);
    const agent = start();
    await plane.reported(second.orderId);
    await endsWhenTold(agent);
    expect(plane.of('report', first.orderId)).toHaveLength(1);
    expect(plane.reports.get(second.orderId)).toMatchObject({ result: 'succeeded' });
  });

  it('waits longer each time before it sends again', async () => {
    plane.script('report', 503, 503, 503, 503);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(sleep.asked.filter((ms) => [500, 1000, 2000, 4000].includes(ms) && ms !== 1000)).toEqual([500, 2000, 4000]);
  });

  it('whose token was revoked meanwhile is sent once more with the new token', async () => {
    plane.script('report', 401);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.of('report').map(({ token }) => token)).toEqual(['token-1', 'token-2']);
    expect(wipes()).toBe(1);
  });
});

describe('asking for work', () => {
  it.each<[string, Scripted]>([
    ['500', 500], ['404', 404], ['a broken connection', 'cut'],
    ['a body that is no JSON', (_, response) => void response.writeHead(200).end('<html>')],
    ['an order that is none of ours', (_, response) => void response.writeHead(200).end('{"orderId":"x","action":{"name":"format-c"}}')],
  ])('survives %s and asks again', async (_, answer) => {
    plane.script('next', answer);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'succeeded' });
  });

  it('attests again when its token is revoked', async () => {
    plane.script('next', 401);
    const order = wipe();
    plane.orders.push(order);
    const agent = start();
    await plane.reported(order.orderId);
    await endsWhenTold(agent);
    expect(plane.of('attest')).toHaveLength(2);
    expect(plane.of('consume')[0]!.token).toBe('token-2');
  });

  it('pauses when the plane answers 204 at once, so that it is not asked in a tight loop', async () => {
    const agent = start({ now: () => new Date(0) });
    await plane.until(() => plane.of('next').length >= 4, 'four questions');
    await endsWhenTold(agent);
    expect(sleep.asked.filter((ms) => ms === 1000).length).toBeGreaterThanOrEqual(3);
  });
});

describe('reboot', () => {
  it('is reported before it is done, and ends the agent (G3)', async () => {
    const order = orderOf({ name: 'reboot' }, { destructive: false });
    plane.orders.push(order);
    plane.script('report', (seen, response) => {
      node.did.push('reported');
      plane.reports.set(order.orderId, seen.body as never);
      plane.json(response, { report: 'taken' });
    });
    await expect(start()).resolves.toBe('rebooting');
    expect(node.did).toEqual(['reported', 'reboot']);
  });

  it('is not done when the plane no longer wants the order', async () => {
    const order = orderOf({ name: 'reboot' }, { destructive: false });
    plane.script('next', (_, response) => plane.json(response, order));
    plane.script('report', 409);
    const agent = start();
    await plane.until(() => plane.of('next').length >= 3, 'further questions');
    await endsWhenTold(agent);
    expect(node.did).toEqual([]);
  });

  it('is done all the same when the plane cannot be reached within its limit', async () => {
    const order = orderOf({ name: 'reboot' }, { destructive: false, timeoutSeconds: 10 });
    plane.orders.push(order);
    plane.script('report', ...Array.from({ length: 20 }, () => 503));
    await expect(start()).resolves.toBe('rebooting');
    expect(node.did).toEqual(['reboot']);
  });
});

it('setting the next boot tells the machine which disk', async () => {
  const order = orderOf({ name: 'set-next-boot', disk: { serial: 'S1' } }, { destructive: false });
  plane.orders.push(order);
  const agent = start();
  await plane.reported(order.orderId);
  await endsWhenTold(agent);
  expect(node.did).toEqual(['next boot S1']);
  expect(plane.reports.get(order.orderId)).toMatchObject({ result: 'succeeded', evidence: { serial: 'S1', how: 'noted' } });
});
