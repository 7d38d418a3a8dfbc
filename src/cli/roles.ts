/** What the command line asks of main: the only place that constructs things. */
import type { Config } from '../config/index.js';
import type { BmcAsk, BmcReport, BmcTarget } from '../contracts/power-by-hand.js';
import type { PowerName } from '../domain/power.js';

/** One look of `metalflow doctor`. `warning` does not stop anything from working. */
export interface DoctorCheck {
  readonly name: string;
  readonly result: 'good' | 'warning' | 'bad';
  readonly found: string;
  /** What to do about it; absent when good. */
  readonly hint?: string;
}

export interface DemoOptions {
  /** The last line is one object for programs; what happens goes to stderr. */
  readonly json: boolean;
  /** Leave everything up at the end, so that the web pages can be looked at, until a signal. */
  readonly keep: boolean;
  /** Simulated nodes, at least one. */
  readonly nodes: number;
  /** Folder for the demo's own data; null takes a new temporary one and removes it. */
  readonly dataDir: string | null;
}

/** One AMT endpoint in front of a simulated machine. */
export interface AmtEndpointOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly machineUuid: string;
  readonly username: string;
  readonly password: string;
}

/** AMT endpoints without machines. */
export interface SimulateAmtOptions {
  readonly count: number;
  readonly host: string;
  /** Port of endpoint 0, the others follow; 0 takes free ones. */
  readonly portBase: number;
  /** Machine UUID of endpoint 0; the others count up from it. */
  readonly uuidBase: string;
  readonly username: string;
  readonly password: string;
  /** With a certificate made for this run. */
  readonly tls: boolean;
  /** Of all of them at the start. */
  readonly power: PowerName;
  /** Switches that are thrown from the start: name → JSON, or text. */
  readonly faults: Readonly<Record<string, string>>;
  /** Loopback port of the control page; 0 takes a free one, null opens none. */
  readonly controlPort: number | null;
  /** Commands to run when a machine is powered. */
  readonly onCommand: string | null;
  readonly offCommand: string | null;
  /** Lines for programs. */
  readonly json: boolean;
}

export interface SimulateNodeOptions {
  /** Where the machine lives: its disks, its key, its journal. The same folder is the same machine. */
  readonly dir: string;
  readonly mac: string;
  readonly diskBytes: number;
  readonly diskSerial: string;
  readonly tftp: { readonly host: string; readonly port: number };
  /** Base URL of the boot plane. */
  readonly bootUrl: string;
  /** Base URL of the agent plane; null takes it from the kernel arguments, as a real node does. */
  readonly agentUrl: string | null;
  /** The node's own AMT endpoint, which powers it. */
  readonly amt: AmtEndpointOptions;
}

export const DHCP_SERVERS = ['kea', 'dnsmasq'] as const;
export type DhcpServer = (typeof DHCP_SERVERS)[number];

/** null: as the settings have it, or left to the site. */
export interface DhcpConfigOptions {
  readonly server: DhcpServer;
  /** IPv4. */
  readonly serverAddress: string | null;
  readonly subnet: { readonly network: string; readonly prefix: number } | null;
  readonly pool: { readonly from: string; readonly to: string } | null;
}

export interface PrintedDhcpConfig {
  /** The whole text, as the server reads it. */
  readonly config: string;
  /** How many devices have a boot file of their own in it. */
  readonly devices: number;
  /** What is printed and will not work as it is. */
  readonly warnings: readonly string[];
}

/**
 * Every role runs until SIGINT or SIGTERM and resolves when it has stopped; what keeps it from starting is thrown as a
 * MetalflowError.
 */
export interface Roles {
  up(config: Config): Promise<void>;
  worker(config: Config): Promise<void>;
  boot(config: Config): Promise<void>;
  agentapi(config: Config): Promise<void>;
  operatorapi(config: Config): Promise<void>;
  demo(options: DemoOptions): Promise<void>;
  simulateAmt(options: SimulateAmtOptions): Promise<void>;
  simulateNode(options: SimulateNodeOptions): Promise<void>;
  /** Looks, changes nothing, throws nothing. */
  doctor(config: Config): Promise<DoctorCheck[]>;
  /** Reads the store. @throws dhcp_config_unprintable, store_unavailable */
  dhcpConfig(config: Config, options: DhcpConfigOptions): Promise<PrintedDhcpConfig>;
  /** One BMC, directly. @param tell what the person who waits may read meanwhile. @throws node_not_found, node_ambiguous, bmc_run_open, reason_required, bmc_busy, bmc_* */
  bmc(config: Config, target: BmcTarget, ask: BmcAsk, tell: (text: string) => void): Promise<BmcReport>;
}
