/** What every action gets, and what it gives back. */
import type { Dispatcher } from 'undici';
import type { AgentAction, OrderProgress, SeedFile } from '../../contracts/order.js';
import type { AgentMachine } from '../../contracts/agent-machine.js';
import type { Sleep } from '../sleep.js';
import type { Ext4Files } from '../ext4-files.js';

export interface ActionContext {
  readonly machine: AgentMachine;
  /** Aborts when the order was stopped or its time is over: actions look at it between chunks. */
  readonly signal: AbortSignal;
  readonly progress: (progress: OrderProgress) => void;
  readonly sleep: Sleep;
  readonly now: () => Date;
  /** Given at attestation; null for runs that install nothing. */
  readonly installCode: string | null;
  /** The files of this order. @throws seed_invalid */
  readonly fetchSeed: () => Promise<SeedFile[]>;
  readonly ext4: Ext4Files;
  /** For image downloads. */
  readonly dispatcher?: Dispatcher;
}

/** The small facts of a success. */
export interface ActionDone {
  readonly message: string;
  readonly evidence: Readonly<Record<string, string | number | boolean>>;
}

/** Failures are thrown as MetalflowError. */
export type DoAction<A extends AgentAction> = (action: A, context: ActionContext) => Promise<ActionDone>;

export const MIB = 1024 * 1024;
