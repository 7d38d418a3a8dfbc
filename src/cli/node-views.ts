/** How answers of the operator plane look to a person. A field that is missing is left out: the plane may be newer than we are. */
import { facts, printable, table } from './output.js';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const inside = (value: unknown, key: string): Fields => (isFields(value) && isFields(value[key]) ? (value[key] as Fields) : {});
/** The list an answer holds, bare or under the name of what it lists. */
export const listOf = (value: unknown, key: string): Fields[] => {
  const list = Array.isArray(value) ? value : isFields(value) && Array.isArray(value[key]) ? (value[key] as unknown[]) : [];
  return list.filter(isFields);
};

const failureText = (failure: unknown): string | null => (isFields(failure) ? `${String(failure.code)}: ${String(failure.message)}` : null);

/** With the time it is from: what nobody looked at for a day is not what it is. */
function powerText(power: unknown, node: Fields): unknown {
  const at = [node.powerAt && `looked at ${String(node.powerAt)}`, node.bmcSeenAt !== node.powerAt && node.bmcSeenAt && `last answer ${String(node.bmcSeenAt)}`].filter(Boolean);
  return power && at.length > 0 ? `${String(power)} (${at.join(', ')})` : power;
}
const driftText = (drift: unknown): string | null => (isFields(drift) ? `${String(drift.state)} should be ${String(drift.expected)}, the BMC reads ${String(drift.reads)}` : null);

export function nodesView(value: unknown, isTerminal: boolean): string {
  const rows = listOf(value, 'nodes').map(({ deviceId, name, state, openRun, phase, power, nodeClass, site, hold }) =>
    [deviceId, name, state, openRun, phase, power, nodeClass, site, isFields(hold) ? hold.code : null]);
  const shown = rows.length === 0 && isTerminal ? 'no nodes\n' : table(['ID', 'NODE', 'STATE', 'RUN', 'PHASE', 'POWER', 'CLASS', 'SITE', 'HOLD'], rows, isTerminal);
  const refused = listOf(value, 'refused').map((device) => [device.deviceId, device.name, inside(device, 'failure').message]);
  // Elsewhere it is a table of nodes, for programs.
  return refused.length > 0 && isTerminal ? `${shown}\n${table(['ID', 'NO NODE YET', 'BECAUSE'], refused, isTerminal)}` : shown;
}

export function nodeView(value: unknown, isTerminal: boolean): string {
  const node = isFields(value) && isFields(value.node) ? value.node : isFields(value) ? value : {};
  const live = inside(value, 'live');
  const lifecycle = inside(live, 'lifecycle');
  const run = inside(live, 'run');
  const last = inside(lifecycle, 'lastRun');
  // A node that reads failed does so for its last run, whether or not its workflow was asked.
  const failed = node.state === 'failed' ? listOf(value, 'runs').map((row) => row.failure)[0] : null;
  const hold = [run.hold, lifecycle.hold, node.hold].find(isFields);
  const shown = facts([
    ['node', node.name], ['device', node.deviceId], ['site', node.site], ['class', node.nodeClass],
    ['state', node.state], ['since', lifecycle.since ?? node.since], ['power', powerText(run.power ?? node.power, node)], ['power drift', driftText(node.drift)], ['proof', run.proof ?? node.proof],
    ['run', run.run ? `${String(run.run)} (${String(run.kind)})` : node.openRun], ['phase', run.phase ?? node.phase], ['waits for', run.waitsFor ?? lifecycle.waitsFor],
    ['disk', run.disk], ['next request', lifecycle.nextRequest],
    ['last run', last.run ? `${String(last.run)} (${String(last.kind)}): ${String(last.end)}` : null], ['failed with', failureText(last.failure ?? failed)],
    ['held by', failureText(hold)], ['what to do', hold?.hint ?? (isFields(failed) ? failed.hint : null)], ['not shown', failureText(live.problem)],
    ...Object.entries(inside(value, 'links')).map(([name, link]) => [`${name} page`, link] as const),
  ], isTerminal);
  const orders = listOf(run, 'orders').map((order) => [order.title, order.state, order.orderId]);
  const runs = listOf(value, 'runs').map((row) => [row.run, row.kind, row.openedAt, row.closedAt, row.end, isFields(row.failure) ? row.failure.code : null]);
  return [
    shown,
    ...(orders.length === 0 ? [] : [table(['ORDER', 'STATE', 'ID'], orders, isTerminal)]),
    ...(runs.length === 0 ? [] : [table(['RUN', 'KIND', 'OPENED', 'CLOSED', 'END', 'CODE'], runs, isTerminal)]),
  ].join('\n');
}

export function planView(value: unknown, isTerminal: boolean): string {
  const answer = isFields(value) ? value : {};
  const plan = inside(value, 'plan');
  const image = inside(plan, 'image');
  const list = (items: unknown): string | null => (Array.isArray(items) && items.length > 0 ? items.map(String).join(', ') : null);
  const shown = facts([
    ['begins', answer.begins], ['destroys', Array.isArray(answer.destroys) ? (list(answer.destroys) ?? 'nothing') : null],
    ['node', plan.nodeName], ['kind', plan.kind], ['class', plan.nodeClass], ['payload', plan.payload], ['template', plan.template],
    ['image', image.source], ['sha256', image.sha256], ['bytes', image.sizeBytes],
    ['wipes first', plan.wipes === true ? (list(plan.wipeDisks) ?? 'no disk is listed') : 'nothing'], ['root disk', image.source ? (plan.rootDisk ?? JSON.stringify(plan.diskRule ?? {})) : null],
    ['phases', list(answer.phases)], ['confirmed by', plan.confirmBy], ['notes', list(answer.notes)],
  ], isTerminal);
  const actions = listOf(plan, 'actions').map((action) => [action.title, action.name, action.timeoutSeconds]);
  return actions.length === 0 ? shown : `${shown}\n${table(['ACTION', 'DOES', 'SECONDS AT MOST'], actions, isTerminal)}`;
}

export const journalView = (value: unknown, isTerminal: boolean): string =>
  table(['AT', 'RUN', 'KIND', 'WHAT', 'BY'], listOf(value, 'journal').map((line) => [line.at, line.run, line.kind, line.text, line.by]), isTerminal);

export const evidenceView = (value: unknown, isTerminal: boolean): string =>
  table(['AT', 'ACCEPTED', 'REASON', 'PROOF', 'BOOT MAC', 'AK', 'ATTESTATION'], listOf(value, 'evidence').map((row) =>
    [row.at, row.accepted, row.reason, row.proof, row.bootMac, row.akThumbprint, row.attestationId]), isTerminal);

const neighbourText = (neighbour: unknown): string | null => (isFields(neighbour) ? `${String(neighbour.system ?? neighbour.chassis)} ${String(neighbour.port)}` : null);

export function strangersView(value: unknown, isTerminal: boolean): string {
  const rows = listOf(value, 'strangers').map((row) => [row.at, row.bootMac, row.systemUuid, row.reason, neighbourText(row.neighbour), row.sender]);
  return rows.length === 0 && isTerminal ? 'no strangers\n' : table(['AT', 'BOOT MAC', 'SYSTEM UUID', 'REASON', 'NEIGHBOUR', 'SENDER'], rows, isTerminal);
}

/** What a verb or a request was answered. */
export const doneView = (value: unknown): string => `${isFields(value) && typeof value.text === 'string' ? printable(value.text) : 'done'}\n`;
