/** The transitions as Mermaid pictures: the way a node goes, and what interrupts it. */
import { ENDED_STATES, isOneOf, LIFECYCLE_STATES, RUNNING_STATES, WAITING_STATES, type LifecycleState } from '../../domain/states.js';
import { TRANSITIONS, type TransitionRow } from '../../domain/transitions.js';

type Target = TransitionRow['to'];
interface Edge {
  readonly from: string;
  readonly to: Target;
  readonly on: string;
}

/** States in which nothing is open and nothing is waited for. */
const isIdle = (state: LifecycleState): boolean => !isOneOf([...RUNNING_STATES, ...WAITING_STATES, ...ENDED_STATES], state);
const IDLE = LIFECYCLE_STATES.filter(isIdle);

/** Part of a node's way: from rest to a run, and from a run to where it leads. */
function isOnTheWay(row: TransitionRow): boolean {
  const startsRun = row.to !== 'previous' && isOneOf(RUNNING_STATES, row.to);
  return startsRun || row.from.every((state) => isOneOf(RUNNING_STATES, state));
}

const IDS: Readonly<Record<string, string>> = { previous: 'before' };
/** Mermaid takes letters, digits and underscores. */
const idOf = (name: string): string => IDS[name] ?? name.replaceAll(/\W/g, '_');
const TITLES: Readonly<Record<string, string>> = { previous: 'the state it was in', idle: IDLE.join(', ') };

/** One arrow a pair of states, with everything that leads that way. */
function draw(edges: readonly Edge[]): string {
  const arrows = new Map<string, string[]>();
  for (const { from, to, on } of edges) {
    const arrow = `${idOf(from)} --> ${idOf(to)}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), on]);
  }
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
  const titled = names.filter((name) => TITLES[name] !== undefined || idOf(name) !== name);
  return [
    '```mermaid',
    'stateDiagram-v2',
    ...titled.map((name) => `  state "${TITLES[name] ?? name}" as ${idOf(name)}`),
    ...[...arrows].map(([arrow, labels]) => `  ${arrow}: ${labels.join(' / ')}`),
    ...names.filter((name) => isOneOf(ENDED_STATES, name)).map((name) => `  ${idOf(name)} --> [*]`),
    '```',
  ].join('\n');
}

/** From rest through a run and back, or out. */
export const nodesWay = (): string => draw(TRANSITIONS.filter(isOnTheWay).flatMap((row) => row.from.map((from) => ({ from, to: row.to, on: row.on }))));

/** Holds, queues, quarantine, maintenance, and a device that goes. */
export const interruptions = (): string => draw(TRANSITIONS.filter((row) => !isOnTheWay(row)).flatMap((row) => fromsOf(row).map((from) => ({ from, to: row.to, on: row.on }))));

/** The states of rest are one box where all of them are meant, or the picture would be a knot. */
function fromsOf({ from }: TransitionRow): readonly string[] {
  return IDLE.every((state) => from.includes(state)) ? ['idle', ...from.filter((state) => !isIdle(state))] : from;
}
