/** The kinds of a run, the phases it goes through, and how it can end. */

/** What a person sets as `desired_action` in NetBox. */
export const REQUESTS = ['provision', 'reprovision', 'wipe', 'retire'] as const;
export type Request = (typeof REQUESTS)[number];
/** Each request opens a run of its own kind. */
export type RunKind = Request;

export const PAYLOADS = ['talos', 'nixos-image', 'alpine-image', 'cloud-init-nocloud'] as const;
export type Payload = (typeof PAYLOADS)[number];

export interface PhaseRow {
  readonly does: string;
  readonly doneWhen: string;
}

export const PHASES = {
  planning: { does: "pins class, template, digest and disk rule; checks the artefact's digest and the BMC's machine UUID", doneWhen: 'all pinned' },
  taking: { does: 'takes the request from NetBox', doneWhen: 'the field is cleared by us' },
  'powering-off': { does: 'asks the BMC for off', doneWhen: 'the BMC reads 6 or 8' },
  arming: { does: 'opens the boot attempt, orders one-time PXE, leases permission', doneWhen: 'the BMC accepted and the lease is written' },
  'powering-on': { does: 'asks the BMC for on', doneWhen: 'the BMC reads 2' },
  'awaiting-boot': { does: 'waits for our boot request of this attempt', doneWhen: 'the gate served it' },
  'awaiting-attestation': { does: "waits for this attempt's attestation", doneWhen: 'it is verified and the disk is pinned' },
  acting: { does: 'hands the orders to the agent, one after the other', doneWhen: 'each is reported' },
  disarming: { does: 'withdraws permission', doneWhen: 'the gate refuses' },
  rebooting: { does: 'hands out the last reboot', doneWhen: 'the node is seen afterwards, or took it' },
  'final-power-off': { does: 'asks the BMC for off, after the last order', doneWhen: 'the BMC reads 6 or 8' },
  confirming: { does: 'provision: waits until the seed is fetched with the code; retire: reads off twice through fresh connections', doneWhen: 'seen, or read off twice' },
} as const satisfies Record<string, PhaseRow>;

export type RunPhase = keyof typeof PHASES;
export const RUN_PHASES = Object.keys(PHASES) as RunPhase[];

/** The phases of each kind, in order. `intake` is a provision of a node that already waits with a verified attestation. */
export const PHASES_OF = {
  provision: ['planning', 'taking', 'powering-off', 'arming', 'powering-on', 'awaiting-boot', 'awaiting-attestation', 'acting', 'disarming', 'rebooting', 'confirming'],
  reprovision: ['planning', 'taking', 'powering-off', 'arming', 'powering-on', 'awaiting-boot', 'awaiting-attestation', 'acting', 'disarming', 'rebooting', 'confirming'],
  wipe: ['planning', 'taking', 'powering-off', 'arming', 'powering-on', 'awaiting-boot', 'awaiting-attestation', 'acting', 'disarming', 'final-power-off'],
  retire: ['planning', 'taking', 'powering-off', 'confirming'],
  'retire-with-wipe': ['planning', 'taking', 'powering-off', 'arming', 'powering-on', 'awaiting-boot', 'awaiting-attestation', 'acting', 'disarming', 'final-power-off', 'confirming'],
} as const satisfies Record<string, readonly RunPhase[]>;

export const phasesOf = (kind: RunKind, wipes: boolean): readonly RunPhase[] => (kind === 'retire' && wipes ? PHASES_OF['retire-with-wipe'] : PHASES_OF[kind]);

/** How a run ends. `cancelled` says whether something was destroyed already, since that decides the state it leaves behind. */
export const RUN_ENDS = {
  done: 'the run did what was asked',
  failed: 'a named failure; nothing is armed',
  cancelled: 'a person, or a newer request, stopped it at a safe point',
  withdrawn: 'the request was taken back before it was taken',
  'run-closed': 'the run had been closed already; its outcome stands',
} as const satisfies Record<string, string>;
export type RunEnd = keyof typeof RUN_ENDS;
