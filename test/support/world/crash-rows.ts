/**
 * Where the house dies. A row is one death in one run of a node's life: a provision of a planned node, or the retirement (with
 * wipe) of the active one. `#n` is the n-th time that the house gets to that point.
 */
import type { createLifecycleActivities } from '../../../src/activities/index.js';
import * as activities from '../../../src/activities/index.js';
import { CRASH_POINTS } from '../../../src/telemetry/crash-points.js';
import type { WorldLimits } from './world.js';

export interface CrashRow {
  readonly at: string;
  /** Why the boot may be lost with the house: it is then ordered once more, with one off and one on. */
  readonly mayBootAgain?: string;
  /** An intent without a command: the next try only observes, and the run writes a second intent, which is the one that is sent. */
  readonly observes?: true;
  /** Shorter ones than the world's: one of them has to pass. */
  readonly limits?: WorldLimits;
  /** Bytes a second of the node's disks, so that the house is back before the work is done. */
  readonly slow?: number;
}

const BOOT_UNDER_WAY = 'the node asks for its boot files while nobody serves them';

export const PROVISION_ROWS: readonly CrashRow[] = [
  { at: 'recallDevice:before' },
  { at: 'recallDevice:before-answer' },
  { at: 'lookAtDevice:registered' },
  { at: 'hook-signalled' },
  { at: 'openRun:before' },
  { at: 'openRun:after-effect' },
  { at: 'keepState:before-answer' },
  { at: 'writeStatus:after-effect' },
  { at: 'watchRun:before' },
  { at: 'enterPhase:before-answer' },
  { at: 'planRun:before' },
  { at: 'planRun:before-answer' },
  { at: 'checkMachine:before' },
  { at: 'noteBmc:before' },
  { at: 'noteBmc:before-answer' },
  { at: 'checkImage:before' },
  { at: 'checkImage:before-answer' },
  { at: 'takeRequest:before' },
  { at: 'takeRequest:marked' },
  { at: 'changePower:before' },
  { at: 'openBootAttempt:after-effect' },
  { at: 'bootOnceFromNetwork:after-effect' },
  { at: 'leasePermission:before' },
  { at: 'keepPermission:after-effect', mayBootAgain: BOOT_UNDER_WAY },
  { at: 'changePower:intent-written', observes: true },
  { at: 'changePower:after-effect', mayBootAgain: BOOT_UNDER_WAY },
  { at: 'changePower:before-answer#2', mayBootAgain: BOOT_UNDER_WAY },
  { at: 'boot-seen-before-commit', mayBootAgain: 'the connection of the boot script died with the house' },
  { at: 'confirmBootSeen:before' },
  { at: 'challenge-taken' },
  { at: 'attestation-before-commit' },
  { at: 'attestation-before-answer' },
  { at: 'agent-seen-before-commit' },
  { at: 'acceptAttestation:before' },
  { at: 'postOrder:before' },
  { at: 'awaitOrder:before' },
  { at: 'order-consume-before-commit' },
  { at: 'order-report-before-commit' },
  { at: 'withdrawPermission:after-effect' },
  { at: 'keepPermission:before-answer' },
  { at: 'order-consume-before-answer#4' },
  { at: 'order-report-before-answer#4' },
  { at: 'seed-redeem-before-commit' },
  { at: 'seed-redeem-before-answer' },
  { at: 'finishRun:before' },
  { at: 'finishRun:before-answer' },
  { at: 'closeRun:before' },
  { at: 'writeJournal:after-effect' },
];

export const RETIRE_ROWS: readonly CrashRow[] = [
  { at: 'reconcile:before' },
  { at: 'reconcile:before-answer' },
  { at: 'lookAtDevice:before' },
  { at: 'lookAtDevice:before-answer' },
  { at: 'openRun:before-answer' },
  { at: 'keepState:before' },
  { at: 'writeStatus:before' },
  { at: 'writeStatus:before-answer' },
  { at: 'enterPhase:before' },
  { at: 'checkMachine:before-answer' },
  { at: 'takeRequest:after-effect' },
  { at: 'takeRequest:before-answer' },
  { at: 'changePower:intent-written', observes: true },
  { at: 'changePower:after-effect' },
  { at: 'changePower:answer-written' },
  { at: 'changePower:before-answer' },
  { at: 'openBootAttempt:before' },
  { at: 'openBootAttempt:before-answer' },
  { at: 'bootOnceFromNetwork:before' },
  { at: 'bootOnceFromNetwork:before-answer' },
  { at: 'leasePermission:before-answer' },
  { at: 'keepPermission:before', mayBootAgain: BOOT_UNDER_WAY },
  { at: 'deliver-signal-run:after-effect' },
  { at: 'confirmBootSeen:before-answer' },
  { at: 'acceptAttestation:before-answer' },
  { at: 'postOrder:before-answer' },
  { at: 'order-posted' },
  { at: 'awaitOrder:before-answer' },
  { at: 'order-consume-before-commit' },
  { at: 'order-consume-before-answer' },
  { at: 'order-progress-before-commit', slow: 8 * 1024 * 1024 },
  { at: 'order-report-before-commit' },
  { at: 'order-report-before-answer' },
  { at: 'deliver-complete:after-effect' },
  { at: 'withdrawPermission:before' },
  { at: 'withdrawPermission:before-answer' },
  { at: 'changePower:after-effect#3' },
  { at: 'confirmOff:before' },
  { at: 'confirmOff:between-reads' },
  { at: 'confirmOff:before-answer' },
  { at: 'watchRun:before-answer' },
  { at: 'closeRun:before-answer' },
  { at: 'writeJournal:before' },
  { at: 'writeJournal:before-answer' },
];

const VERB = 'only a person says it, to a node that is held';
/** Points that neither a provision nor a retirement passes, and why. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  ...around('noteHold', 'nothing holds these runs'),
  ...around('waitForPower', 'no power command fails to take effect in these runs'),
  ...around('alertHold', 'nothing holds these runs'),
  ...around('noteVerb', VERB),
  ...around('approveMachine', VERB),
  ...around('renewPin', VERB),
  ...around('resolveOrderAsDone', VERB),
  ...around('adoptDevice', VERB),
  ...around('letNetboxStand', VERB),
  ...around('tellRefusal', 'only for a device with a mistake, which is no node'),
  ...around('orderResult', 'asked only after an unknown outcome, or a hand in Temporal'),
  ...around('cancelOrders', 'only after a hand in Temporal'),
  ...around('adoptIntakeAttempt', 'only for a node that waits already: crash-edges'),
  ...around('watchPower', 'it reads and tells, and the next walk does so again'),
  'deliver-signal-lifecycle:after-effect': 'only for a node that waits already: crash-edges',
  'installation-begun': 'at the first start of a house: crash-edges',
  'installation-linked': 'at the first start of a house: crash-edges',
  'boot-seen-before-answer': 'the node is booted once more: crash-edges',
};

function around(activity: string, why: string): Record<string, string> {
  return { [`${activity}:before`]: why, [`${activity}:before-answer`]: why };
}

/** Every activity there is, by the factories that make them. */
export function activityNames(): string[] {
  const factories = Object.entries(activities).filter(([name]) => /^create\w+Activities$/.test(name)).map(([, factory]) => factory as typeof createLifecycleActivities);
  // Nothing is called: the factories only close over what they are given.
  return factories.flatMap((create) => Object.keys(create({ stores: {} } as never)));
}

export const allPoints = (): string[] => [...activityNames().flatMap((name) => [`${name}:before`, `${name}:before-answer`]), ...Object.keys(CRASH_POINTS)];
export const pointOf = ({ at }: CrashRow): string => at.split('#')[0]!;
