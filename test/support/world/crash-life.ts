/**
 * A node's life with a death of the house in it, and what must be true of it in the end. All of it is counted where the thing
 * happened: by the node in its own journal, by the AMT that took the commands, by NetBox, by the store.
 */
import { existsSync, rmSync } from 'node:fs';
import { crashMarker } from '../../../src/telemetry/crash-point.js';
import type { Db } from '../../../src/store/index.js';
import { runWorkflowId, type RunOutcome } from '../../../src/contracts/messages.js';
import type { CrashRow } from './crash-rows.js';
import type { World, WorldLimits, WorldNode, WorldOptions } from './world.js';

/** Short where every death is waited for: what the dead house held, or had begun. The others are long, so that a house that is away is not mistaken for a fault. */
export const CRASH_WORLD: WorldOptions = { limits: { activityTry: 5, workflowHandover: 1, bmcLock: 10, permissionLease: 300, settling: 60 } };
/** Limits that pass in a row, and in that one only. */
const passing = ({ mayBootAgain, observes, limits }: CrashRow): WorldLimits => ({ ...(mayBootAgain && { awaitingBoot: 20 }), ...(observes && { poweringOff: 3, poweringOn: 3 }), ...limits });

export interface Life {
  readonly world: World;
  readonly node: WorldNode;
  readonly db: Db;
}

export async function beginLife(world: World): Promise<Life> {
  return { world, node: await world.addNode({ payload: 'talos', diskBytes: 20 * 1024 * 1024 }), db: await world.db() };
}

/** Starts the house with the point, does what leads there, and waits until the house is dead of it. */
export async function startAndDie(world: World, at: string, lead: () => void | Promise<void> = () => undefined): Promise<void> {
  const marker = crashMarker(world.dir, at);
  rmSync(marker, { force: true });
  await world.house?.kill();
  // It may be dead before it says that it is up: what was due fires at once.
  await world.start({ METALFLOW_TEST_CRASH_POINT: at }).catch((error: Error) => {
    if (!existsSync(marker)) throw error;
  });
  await lead();
  await world.until(`the house to die at ${at}`, () => existsSync(marker) && !world.house?.isRunning());
}

/** Asks, with a death at the row's point on the way; without a row, in peace. */
export async function dieAndGoOn({ world, node }: Life, request: 'provision' | 'retire', row: CrashRow | null): Promise<void> {
  if (!row) {
    if (!world.house?.isRunning()) await world.start();
    return world.ask(node, request);
  }
  node.machine.node.setBehaviours({ slowBytesPerSecond: row.slow });
  world.limit(passing(row));
  await startAndDie(world, row.at, () => world.ask(node, request));
  await world.start();
}

/** How a run of this kind ends in peace, and the power commands that it sends: a planned node is off, an active one is on. */
export interface Expected {
  readonly run: number;
  readonly state: string;
  readonly status: string;
  readonly sent: { readonly on: number; readonly off: number };
}
const ENDS: Readonly<Record<'provision' | 'retire', Expected>> = {
  provision: { run: 1, state: 'active', status: 'active', sent: { on: 1, off: 0 } },
  retire: { run: 2, state: 'retired', status: 'offline', sent: { on: 1, off: 2 } },
};
const VALUES = { on: 2, off: 8 } as const;

/** What was counted before the run. */
export interface Before {
  readonly on: number;
  readonly off: number;
  readonly journal: number;
}
export const countBefore = ({ node }: Life): Before => {
  const { byValue } = node.machine.amt.counts();
  return { on: byValue[VALUES.on] ?? 0, off: byValue[VALUES.off] ?? 0, journal: node.machine.node.journal().length };
};

/**
 * Waits for the state, with no run open, in the store. Not through the operator plane, which queries the workflows at each look: a
 * query that meets a signal while the house comes up is a trouble of its own.
 */
export const untilState = ({ world, node, db }: Life, state: string): Promise<unknown> =>
  world.until(`${node.name} ${state}`, async () => {
    const row = await db.selectFrom('device').select(['state', 'open_run']).where('device_id', '=', node.deviceId).executeTakeFirst();
    return row?.state === state && row.open_run === null;
  });

/** Waits for the run's end and holds the claim against it. */
export async function expectRunDoneOnce(life: Life, request: 'provision' | 'retire', before: Before, row: CrashRow | null, expected: Partial<Expected> = {}): Promise<void> {
  const { world, node, db } = life;
  const { run, state, status, sent } = { ...ENDS[request], ...expected };
  await untilState(life, state);
  // The last of all: the lifecycle tells NetBox, and the outbox is empty.
  await world.until('NetBox to be told', () => world.netbox.device(node.deviceId)!.status === status);
  await world.until('the outbox to be empty', async () => (await db.selectFrom('outbox').selectAll().where('delivered_at', 'is', null).execute()).length === 0);

  // The run ended as one that nobody disturbed, in the store and in Temporal; no other run was opened.
  const runs = await db.selectFrom('run').selectAll().where('device_id', '=', node.deviceId).execute();
  expect(runs.map(({ number }) => number)).toEqual(Array.from({ length: run }, (_, index) => index + 1));
  expect(JSON.parse(runs.at(-1)!.outcome!)).toMatchObject({ end: 'done', failure: null });
  const outcome = (await world.temporal.client.workflow.getHandle(runWorkflowId(node.deviceId, run)).result()) as RunOutcome;
  expect(outcome).toMatchObject({ end: 'done', failure: null });

  // Each destruction once, by the node's own word, and never the same order twice.
  const did = node.machine.node.journal().slice(before.journal).filter(({ event, what }) => event === 'agent' && what === 'started');
  const count = (action: string): number => did.filter((entry) => entry['action'] === action).length;
  expect({ wipes: count('wipe-disk'), images: count('write-image') }).toEqual(request === 'provision' ? { wipes: 0, images: 1 } : { wipes: 1, images: 0 });
  expect(new Set(did.map(({ orderId }) => orderId)).size).toBe(did.length);
  const orders = await db.selectFrom('agent_order').selectAll().where('device_id', '=', node.deviceId).where('run', '=', run).execute();
  expect(orders.map((order) => order.grant_no)).toEqual(orders.map(() => 1));

  await expectPowerOnce(life, run, sent, before, row);

  const device = world.netbox.device(node.deviceId)!;
  expect(device).toMatchObject({ status, customFields: { desired_action: null, lifecycle_state: state } });

  // Nothing is left that would let the node, or anybody, do anything.
  const left = {
    leases: await db.selectFrom('permission').selectAll().where('device_id', '=', node.deviceId).execute(),
    locks: await db.selectFrom('bmc_lock').selectAll().where('bmc', '=', `127.0.0.1:${node.machine.amt.port}`).execute(),
    orders: orders.filter((order) => order.state !== 'reported'),
    attempts: await db.selectFrom('boot_attempt').selectAll().where('device_id', '=', node.deviceId).where('closed_at', 'is', null).execute(),
    sessions: await db.selectFrom('session').selectAll().where('device_id', '=', node.deviceId).where('revoked_at', 'is', null).execute(),
  };
  expect(left).toEqual({ leases: [], locks: [], orders: [], attempts: [], sessions: [] });
}

/**
 * One command a request. An intent is written before the wire and is sent by the try that wrote it, or never: so no value was sent
 * more often than it was intended, and the only intent without a command is the one whose try died between the two.
 * A run in peace sends what `peace` says. A boot that the house lost costs one off and one on more, and the
 * store's journal says so; nothing else does.
 */
async function expectPowerOnce({ node, db }: Life, run: number, peace: Expected['sent'], before: Before, row: CrashRow | null): Promise<void> {
  const { byValue, powerCommands } = node.machine.amt.counts();
  const sent = { on: (byValue[VALUES.on] ?? 0) - before.on, off: (byValue[VALUES.off] ?? 0) - before.off };
  const lines = await db.selectFrom('journal').select('text').where('device_id', '=', node.deviceId).where('run', '=', run).where('kind', '=', 'phase').execute();
  const again = lines.filter(({ text }) => /^powering-off: boot attempt \d+ (was not seen|did not attest)/.test(text)).length;
  if (!row?.mayBootAgain) expect(again).toBe(0);
  expect(again).toBeLessThanOrEqual(1);
  expect(sent).toEqual({ on: peace.on + again, off: peace.off + again });

  const intents = await db.selectFrom('power_intent').selectAll().where('device_id', '=', node.deviceId).where('run', '=', run).execute();
  expect(new Set(intents.map(({ id }) => id)).size).toBe(intents.length);
  expect(intents.length - (sent.on + sent.off)).toBe(row?.observes ? 1 : 0);
  for (const command of ['on', 'off'] as const) expect(sent[command]).toBeLessThanOrEqual(intents.filter((intent) => intent.command === command).length);
  // Nothing but on and off was ever asked, and nothing was refused.
  expect(powerCommands.filter(({ value, returnValue }) => ![2, 8].includes(value) || returnValue !== 0)).toEqual([]);
}

/** A node becomes active and is retired, each with its death; null: in peace. */
export async function expectLifeDoneOnce(world: World, provision: CrashRow | null, retire: CrashRow | null): Promise<void> {
  const life = await beginLife(world);
  for (const [request, row] of [['provision', provision], ['retire', retire]] as const) {
    const before = countBefore(life);
    await dieAndGoOn(life, request, row);
    await expectRunDoneOnce(life, request, before, row);
  }
}
