/** The small BMC interface. A command never claims an effect; observation does. */
import type { PowerReading } from '../domain/power.js';
import type { BmcAddress } from './device.js';

/** What a BMC said to a command. `unknown` means that it may or may not have taken effect: observe, do not send again. */
export type CommandResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly code: 'bmc_refused' | 'bmc_auth_failed' | 'bmc_answer_invalid' | 'bmc_manual_task'; readonly why: string; readonly details?: Readonly<Record<string, string>> }
  /** The request surely never reached the BMC (connection refused, no route): nothing happened. */
  | { readonly kind: 'not-sent'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

export type UuidReading =
  | { readonly kind: 'read'; readonly uuid: string }
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'unknown'; readonly code: 'bmc_unreachable' | 'bmc_auth_failed' | 'bmc_refused' | 'bmc_answer_invalid'; readonly why: string };

export interface BmcIdentity {
  readonly product: string;
  readonly version: string;
}

export interface BmcCapabilities {
  readonly bootOnceFromNetwork: boolean;
  /** Why not, in words that tell the operator what to change. */
  readonly why?: string;
}

/** One BMC, one conversation. `open` of the factory always makes fresh connections. No method throws for what a BMC does. */
export interface Bmc {
  readonly address: BmcAddress;
  observePower(): Promise<PowerReading>;
  machineUuid(): Promise<UuidReading>;
  powerOn(): Promise<CommandResult>;
  powerOff(): Promise<CommandResult>;
  /** Arms one boot from the network. Sends no power command. */
  bootOnceFromNetwork(): Promise<CommandResult>;
  identify(): Promise<BmcIdentity | null>;
  capabilities(): Promise<BmcCapabilities | null>;
  close(): Promise<void>;
}

export interface BmcCredentials {
  readonly username: string;
  readonly password: string;
}

export interface BmcFactory {
  /** @throws MetalflowError `bmc_auth_failed` when the secret `bmc-<type>` is missing or unreadable, `device_invalid` for a type without driver */
  open(address: BmcAddress): Promise<Bmc>;
}

/** Secrets by name (a file of the secrets folder, re-read when it changes). */
export interface SecretReader {
  /** The parsed JSON of `<name>.json`; null when there is none. */
  readJson(name: string): Promise<unknown>;
}
