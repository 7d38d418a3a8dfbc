/** The small BMC interface. A command never claims an effect; observation does. */
import type { BmcProblemCode, PowerReading } from '../domain/power.js';
import type { BmcAddress } from './device.js';

/** What a BMC said to a command. `unknown` means that it may or may not have taken effect: observe, do not send again. */
export type CommandResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly code: Exclude<BmcProblemCode, 'bmc_unreachable'> | 'bmc_manual_task'; readonly why: string; readonly details?: Readonly<Record<string, string>> }
  /** The request surely never reached the BMC (connection refused, no route): nothing happened. */
  | { readonly kind: 'not-sent'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

export type UuidReading =
  /** `byteOrder`: IPMI only, in which of the orders that BMCs send it reads so. */
  | { readonly kind: 'read'; readonly uuid: string; readonly byteOrder?: 'smbios' | 'rfc4122' | 'ipmi' }
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'unknown'; readonly code: BmcProblemCode; readonly why: string; readonly notAsked?: true };

export interface BmcIdentity {
  readonly product: string;
  readonly version: string;
}

export interface BmcCapabilities {
  readonly bootOnceFromNetwork: boolean;
  /** Why not, in words that tell the operator what to change. */
  readonly why?: string;
  /** Modern Standby: power reads on while the operating system sleeps. Absent where the BMC does not say, as when it is off; says nothing of off. */
  readonly osPowerSaving?: 'full' | 'saving';
}

/** What one look of `diagnose` came to. `unknown`: it could not be read. */
export interface BmcLook {
  readonly result: 'good' | 'warning' | 'bad' | 'unknown';
  /** What was found, in words. */
  readonly found: string;
  /** What to do about it; absent when good. */
  readonly hint?: string;
}

/** A trap of BMCs, looked for; null where the BMC did not say. */
export type BmcFinding = BmcLook & (
  | { readonly about: 'version'; readonly version: string | null }
  | { readonly about: 'provisioning'; readonly mode: 'admin' | 'client' | 'none' | null }
  | { readonly about: 'control-mode'; readonly mode: 'admin' | 'client' | 'none' | null }
  | { readonly about: 'boot-capability'; readonly networkBoot: boolean | null }
  /** `isHosts`: it is the address that the operating system has. */
  | { readonly about: 'address'; readonly address: string | null; readonly dhcp: boolean | null; readonly isHosts: boolean | null }
  /** Whether the BMC keeps its link, and itself, awake while the machine is off. */
  | { readonly about: 'link-when-off'; readonly kept: boolean | null }
  | { readonly about: 'power-policy'; readonly policy: string | null; readonly source: 'mains' | 'battery' | null; readonly idleMinutes: number | null }
  /** Its clock less ours, in seconds. */
  | { readonly about: 'clock'; readonly skewSeconds: number | null }
  | { readonly about: 'os-power-saving'; readonly state: 'full' | 'saving' | null }
);

/**
 * One BMC, one conversation. `open` of the factory always makes fresh connections. No method throws for what a BMC does; MetalflowError
 * `device_invalid` where a BMC serves several machines and NetBox does not say which, `bmc_tool_missing` on a worker without ipmitool.
 */
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
  /**
   * Looks for what keeps a BMC from doing its work; changes nothing. Empty where a driver knows no traps.
   * @param host what the machine's operating system has: its addresses without prefix length
   */
  diagnose(host?: { readonly addresses: readonly string[] }): Promise<BmcFinding[]>;
  close(): Promise<void>;
}

/** A BMC that is only looked at. */
export type BmcLooks = Pick<Bmc, 'observePower' | 'machineUuid' | 'identify' | 'capabilities' | 'diagnose'>;

export interface BmcCredentials {
  readonly username: string;
  readonly password: string;
}

export interface BmcFactory {
  /**
   * @throws MetalflowError `bmc_auth_failed` when the secret `bmc-<type>` is missing or unreadable, `device_invalid` for an address no
   * driver can use, `setting_invalid` for authorities that cannot be read
   */
  open(address: BmcAddress): Promise<Bmc>;
}

/** Secrets by name (a file of the secrets folder, re-read when it changes). */
export interface SecretReader {
  /** The parsed JSON of `<name>.json`; null when there is none. */
  readJson(name: string): Promise<unknown>;
}
