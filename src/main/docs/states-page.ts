/** docs/states.md: the tables of domain/. */
import { ACTIONS, ORDER_STATES } from '../../domain/actions.js';
import { BOOT_ATTEMPTS, LIMITS, POWER_REQUESTS, type LimitName } from '../../domain/limits.js';
import { judgeRequest, type Judgement } from '../../domain/requests.js';
import { PHASES, PHASES_OF, REQUESTS, RUN_ENDS, type RunKind, type RunPhase } from '../../domain/runs.js';
import { LIFECYCLE_STATES, STATES, type LifecycleState } from '../../domain/states.js';
import { STARTED_EVENT, TRANSITIONS } from '../../domain/transitions.js';
import { interruptions, nodesWay } from './diagrams.js';
import { code, duration, page, table } from './markdown.js';

/** What a phase waits by. An order's own time is in the template. */
const PHASE_LIMITS: { readonly [phase in RunPhase]: readonly LimitName[] } = {
  planning: ['planning'],
  taking: ['taking'],
  'powering-off': ['poweringOff', 'settling'],
  arming: ['arming'],
  'powering-on': ['poweringOn', 'settling'],
  'awaiting-boot': ['awaitingBoot'],
  'awaiting-attestation': ['awaitingAttestation'],
  acting: ['orderQueued', 'agentSilence', 'actionDefault', 'actionMost'],
  disarming: ['disarming'],
  rebooting: ['orderQueued', 'agentSilence'],
  'final-power-off': ['poweringOff', 'settling'],
  confirming: ['confirmingSeed', 'confirmingOff'],
};

/** The kinds of run that may be open in a state; one `null` where none can be. */
function openKindsIn(state: LifecycleState): readonly (RunKind | null)[] {
  const kinds = REQUESTS.filter((kind) => TRANSITIONS.some((row) => row.on === STARTED_EVENT[kind] && row.to === state));
  return kinds.length > 0 ? kinds : [null];
}

function judgementText(judgement: Judgement): string {
  switch (judgement.kind) {
    case 'nothing': return 'nothing new';
    case 'start': return `starts a ${judgement.run}`;
    case 'keep': return 'kept as the next request';
    case 'stop-open-run': return 'the open run is asked to stop at its next safe point, then judged again';
    case 'refuse': return `refused: ${judgement.failure.details!['why']}`;
  }
}

function requestRows(): string[][] {
  return LIFECYCLE_STATES.flatMap((state) => {
    const kinds = openKindsIn(state);
    return kinds.map((open) => [
      kinds.length > 1 ? `${code(state)} (${open})` : code(state),
      ...[...REQUESTS, null].map((request) => judgementText(judgeRequest(state, request, open))),
    ]);
  });
}

const limitsOf = (phase: RunPhase): string => PHASE_LIMITS[phase].map((name) => `${code(name)} ${duration(LIMITS[name].seconds)}`).join(', ');

export const statesPage = (): string => page(
  'States, phases, limits',
  'What a node can be, how it gets there, and how long anything may take. The errors, each with its way out, are in [errors.md](errors.md).',
  '## Lifecycle states',
  `One workflow \`node/<NetBox device id>\` holds the state of a node. The status is what it writes to NetBox when it enters the state. \`adopted\` is a mark beside the state: an active device that metalflow did not install.`,
  table(['state', 'meaning', 'NetBox status', 'out of it'], LIFECYCLE_STATES.map((state) => [code(state), STATES[state].meaning, STATES[state].netboxStatus ?? 'unchanged', STATES[state].waysOut])),
  '## Transitions',
  'The way a node goes:',
  nodesWay(),
  'What interrupts it:',
  interruptions(),
  table(['from', 'on', 'to', 'because'], TRANSITIONS.map((row) => [row.from.map(code).join(', '), row.on, row.to === 'previous' ? 'the state it was in' : code(row.to), row.because])),
  '## Requests',
  'What `desired_action` in NetBox does in each state. Where several kinds of run may be open, the open one stands in brackets.',
  table(['state', ...REQUESTS.map(code), 'cleared'], requestRows()),
  '## Phases of a run',
  'Each kind of run goes through its phases in order. A passed limit is a named failure or a hold, never silence.',
  table(['run', 'phases'], Object.entries(PHASES_OF).map(([kind, phases]) => [kind, phases.map(code).join(' → ')])),
  table(['phase', 'does', 'done when', 'limits'], Object.entries(PHASES).map(([phase, row]) => [code(phase), row.does, row.doneWhen, limitsOf(phase as RunPhase)])),
  `A boot that is not seen, or seen and never attested, is tried ${BOOT_ATTEMPTS} times in all, each time from power off. A power command is sent at most ${POWER_REQUESTS} times in a phase, the second time only when a reading shows that the first had no effect.`,
  '## Ends of a run',
  table(['end', 'meaning'], Object.entries(RUN_ENDS).map(([end, meaning]) => [code(end), meaning])),
  '## Actions and orders',
  'An action of a template becomes an order: permission to do it once.',
  table(['action', 'does', 'destructive'], Object.entries(ACTIONS).map(([name, row]) => [code(name), row.does, row.destructive ? 'yes' : 'no'])),
  table(['order', 'meaning'], Object.entries(ORDER_STATES).map(([state, meaning]) => [code(state), meaning])),
  '## Limits',
  'A run keeps the limits it was started with.',
  table(['limit', 'default', 'of'], Object.entries(LIMITS).map(([name, row]) => [code(name), duration(row.seconds), row.of])),
);
