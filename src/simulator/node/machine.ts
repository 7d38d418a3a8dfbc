/** What a simulated node gives its agent: the same shape as a real machine, so that the agent cannot tell. */
import type { Disk } from '../../domain/disks.js';

/** An open disk. Positions and lengths in bytes. */
export interface NodeDiskHandle {
  readonly serial: string;
  readonly sizeBytes: number;
  readonly fd: number;
  read(position: number, length: number): Promise<Buffer>;
  write(position: number, bytes: Uint8Array): Promise<void>;
  discard(): Promise<boolean>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface NodeDisk extends Disk {
  open(): Promise<NodeDiskHandle>;
}

/** What an agent says it began, and how it ended. */
export interface AgentJournalEntry {
  readonly at: string;
  readonly orderId: string;
  readonly action: string;
  readonly what: string;
  readonly disk?: string;
}

export interface SimulatedMachine {
  readonly systemUuid: string;
  readonly bootMac: string;
  /** SPKI DER. */
  readonly akPublic: Buffer;
  sign(bytes: Uint8Array): Promise<Buffer>;
  lldpFrame(): Promise<Buffer | null>;
  disks(): Promise<NodeDisk[]>;
  setNextBoot(disk: Disk): Promise<string>;
  /** Ends with the power that the agent runs on. */
  reboot(): Promise<void>;
  journal(entry: AgentJournalEntry): void;
  wasStarted(orderId: string): boolean;
}

/** Starts the agent on a machine, against the agent plane at `api`. `stop` takes effect before it returns; its promise is for the tidying up. */
export type StartAgent = (machine: SimulatedMachine, api: string) => { stop(): Promise<void> | void };
