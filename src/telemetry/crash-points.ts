/**
 * The places inside an effect at which a test can kill the process. Around every activity there are two more: `<activity>:before`
 * and `<activity>:before-answer`, when all is done and Temporal does not know it.
 */
export const CRASH_POINTS = {
  'openRun:after-effect': 'the run has its number; Temporal was not asked whether it knows that number',
  'lookAtDevice:registered': 'the device is in the store; its former history was not yet ended',
  'takeRequest:marked': 'the run is noted as the taker; NetBox still shows the request',
  'takeRequest:after-effect': 'NetBox cleared the field; the store does not know it',
  'writeStatus:after-effect': 'NetBox has the status; the store does not know it',
  'writeJournal:after-effect': 'our journal has the line; NetBox was not told',
  'openBootAttempt:after-effect': 'a boot attempt is open that no workflow knows',
  'keepPermission:after-effect': 'the lease is renewed; nobody heard a heartbeat',
  'withdrawPermission:after-effect': 'the permission is gone',
  'bootOnceFromNetwork:after-effect': 'the BMC is armed',
  'changePower:intent-written': 'the intent is in the store; nothing went over the wire',
  'changePower:after-effect': 'the BMC took the command; the store does not know its answer',
  'changePower:answer-written': 'the store has the answer; nobody looked whether the power followed',
  'confirmOff:between-reads': 'off was read once',
  'order-posted': 'the order is in the ledger; no workflow knows its id',
  'order-consume-before-commit': 'the agent asked for the order; it is still queued',
  'order-consume-before-answer': 'the order is taken; the agent does not know it',
  'order-progress-before-commit': 'the agent is at work and says how far it is',
  'order-report-before-commit': 'the work is done and reported; the ledger does not have the report',
  'order-report-before-answer': 'the ledger has the report; the agent does not know it, and Temporal neither',
  'boot-seen-before-commit': 'the node asked for its boot file; nobody remembers it',
  'boot-seen-before-answer': 'the boot is remembered; the node has no boot file',
  'challenge-taken': 'the challenge of an attestation is spent; nothing came of it',
  'attestation-before-commit': 'the attestation was judged; nobody remembers it',
  'attestation-before-answer': 'the attestation is accepted; the node has neither token nor code',
  'agent-seen-before-commit': "an agent's first request; nobody remembers it",
  'seed-redeem-before-commit': 'the install code was checked; it is still good',
  'seed-redeem-before-answer': 'the install code is spent; the installed system has no seed',
  'hook-signalled': 'the lifecycle has the signal; the webhook is not remembered',
  'deliver-signal-run:after-effect': 'the run has the signal; its row is still due',
  'deliver-signal-lifecycle:after-effect': 'the lifecycle has the signal; its row is still due',
  'deliver-complete:after-effect': 'the activity is completed; its row is still due',
  'installation-begun': 'the store has an installation id; Temporal has none',
  'installation-linked': 'Temporal has the installation id; the store has not confirmed it',
} as const satisfies Record<string, string>;

export type CrashPointName = keyof typeof CRASH_POINTS | `${string}:${'before' | 'before-answer'}`;
