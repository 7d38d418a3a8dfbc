/** Looks at a world: what a test asks of a node again and again, each answered by the API, the machine or the store. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Failure } from '../../../src/domain/errors.js';
import type { NodeClass } from '../../../src/contracts/node-class.js';
import type { JournalLine, NodeRow, RunRow } from '../../../src/contracts/operator.js';
import { openDatabase, type Db } from '../../../src/store/index.js';
import type { World, WorldNode } from './world.js';

/** Held with this code: by its lifecycle, or by its open run. */
export async function untilHeld(world: World, node: WorldNode, code: Failure['code'], seconds?: number): Promise<NodeRow & { hold: Failure }> {
  const seen = await world.until(`${node.name} held (${code})`, async () => {
    const row = await world.node(node);
    return row.hold?.code === code ? row : null;
  }, seconds);
  return seen as NodeRow & { hold: Failure };
}

export const untilRunEnds = (world: World, node: WorldNode, run: number, seconds?: number): Promise<RunRow> =>
  world.until(`run ${run} of ${node.name} ended`, async () => {
    const row = await world.run(node, run);
    return row.end ? row : null;
  }, seconds);

export const untilPhase = (world: World, node: WorldNode, phase: string, seconds?: number): Promise<NodeRow> =>
  world.until(`${node.name} in ${phase}`, async () => {
    const row = await world.node(node);
    return row.phase === phase ? row : null;
  }, seconds);

/** A verb that has to be accepted. */
export async function say(world: World, node: WorldNode, verb: string, body: object = {}): Promise<void> {
  const { status, body: answer } = await world.api('POST', `/api/v1/nodes/${node.deviceId}/${verb}`, body);
  if (status !== 200) throw new Error(`${verb}: ${status} ${JSON.stringify(answer)}`);
}

/** A verb that has to be refused. */
export async function refused(world: World, node: WorldNode, verb: string, body: object = {}): Promise<string> {
  const { status, body: answer } = await world.api('POST', `/api/v1/nodes/${node.deviceId}/${verb}`, body);
  if (status < 400) throw new Error(`${verb} was accepted: ${JSON.stringify(answer)}`);
  return `${String(answer['code'])}: ${String(answer['message'])}`;
}

/** Values of the power commands that reached the BMC, in order: 2 on, 8 off. */
export const powerCommands = ({ machine }: WorldNode): number[] => machine.amt.counts().powerCommands.map(({ value }) => value);

/** Calls that arm a boot. */
export const bootOrders = ({ machine }: WorldNode): string[] => machine.amt.counts().calls.filter((call) => /^(ChangeBootOrder|SetBootConfigRole|Put )/.test(call));

/** Order ids of the actions that the machine itself says it began, in order. */
export const begun = ({ machine }: WorldNode, action: string): string[] =>
  machine.node.journal().filter((entry) => entry.event === 'agent' && entry['action'] === action && entry['what'] === 'started').map((entry) => String(entry['orderId']));

/** What a person reads in NetBox's journal. */
export const netboxJournal = (world: World, node: WorldNode): string[] => world.netbox.journal(node.deviceId).map(({ comments }) => comments);

export async function journal(world: World, node: WorldNode): Promise<JournalLine[]> {
  const { body } = await world.api('GET', `/api/v1/nodes/${node.deviceId}/journal?limit=1000`);
  return body['journal'] as JournalLine[];
}

/** Reads the store, and lets go of it again: a test may put another file in its place. */
export async function inStore<T>(world: World, look: (db: Db) => Promise<T>): Promise<T> {
  const db = await openDatabase(`sqlite:${join(world.dir, 'metalflow.db')}`);
  try {
    return await look(db);
  } finally {
    await db.destroy();
  }
}

export const orders = (world: World, node: WorldNode) => inStore(world, (db) => db.selectFrom('agent_order').selectAll().where('device_id', '=', node.deviceId).orderBy('id').execute());

/** Whoever reads it meanwhile finds the old text or the new one, and never half of it. */
export function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/** A class of its own for a test, made from a payload's. */
export function addClass(world: World, name: string, from: string, change: (nodeClass: NodeClass) => Partial<NodeClass>): void {
  const file = join(world.dir, 'classes.yaml');
  const { classes } = parse(readFileSync(file, 'utf8')) as { classes: NodeClass[] };
  const base = classes.find((one) => one.name === from)!;
  replaceFile(file, stringify({ classes: [...classes.filter((one) => one.name !== name), { ...base, name, ...change(base) }] }, { aliasDuplicateObjects: false }));
}
