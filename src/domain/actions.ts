/** The actions our agent performs itself. A template names one by its image, `metalflow/<name>`. */

export interface ActionRow {
  readonly does: string;
  /** Destroys what a disk holds: such an order is consumed before it is done, and never handed out twice. */
  readonly destructive: boolean;
}

export const ACTIONS = {
  'wipe-disk': { does: 'destroys what a listed disk holds', destructive: true },
  'write-image': { does: 'streams the image of the class to the pinned disk, checks the digest, reads it back', destructive: true },
  'write-seed': { does: 'places the seed where the installed system looks for it', destructive: false },
  'set-next-boot': { does: 'makes the firmware boot the disk next', destructive: false },
  reboot: { does: 'restarts the node; the last order of a run', destructive: false },
} as const satisfies Record<string, ActionRow>;

export type ActionName = keyof typeof ACTIONS;
export const ACTION_NAMES = Object.keys(ACTIONS) as ActionName[];

/** The ledger's word for where an order is. */
export const ORDER_STATES = {
  queued: 'offered to the agent; nothing has happened yet',
  consumed: 'taken by the agent: it may be doing it, and it is never handed out again',
  reported: 'the agent, or a person with `resume --done`, said what became of it',
  unknown: 'taken and never reported; only a late report or a person resolves it',
  cancelled: 'void: nobody took it, its time ran out, its run ended, was reset or was stopped',
} as const satisfies Record<string, string>;

export type OrderState = keyof typeof ORDER_STATES;
export const OPEN_ORDER_STATES = ['queued', 'consumed'] as const satisfies OrderState[];
