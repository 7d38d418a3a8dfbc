/** The machine the agent runs on, real or simulated. The agent reaches hardware through this and nothing else. */
import type { Disk } from '../domain/disks.js';
import type { AgentAction } from './order.js';

/** An open disk. Positions and lengths in bytes from the start of the disk. */
export interface DiskHandle {
  readonly serial: string;
  readonly sizeBytes: number;
  /** Valid in this process until close, in its worker threads too. */
  readonly fd: number;
  /** Exactly `length` bytes. @throws when the disk ends before */
  read(position: number, length: number): Promise<Buffer>;
  /** All of it. @throws when it does not fit, having written nothing */
  write(position: number, bytes: Uint8Array): Promise<void>;
  /** Tells the device to forget everything at once; false when it cannot, or refused. What it reads afterwards is up to the device. */
  discard(): Promise<boolean>;
  /** Everything written so far has reached the device. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** A disk of the inventory. It is found by serial or WWN, never by its name, which moves between boots. */
export interface AgentDisk extends Disk {
  open(): Promise<DiskHandle>;
}

/** One line of the agent's journal: what was begun on this machine and how it ended. */
export interface JournalEntry {
  readonly at: string;
  readonly orderId: string;
  readonly action: AgentAction['name'];
  readonly what: 'started' | 'done' | 'failed' | 'stopped';
  /** Serial of the disk it works on. */
  readonly disk?: string;
}

/** A TPM's endorsement key, for the proof that the AK lives in that TPM. */
export interface EndorsementKey {
  /** As the TPM gives it. */
  readonly public: Buffer;
  readonly certificate?: Buffer;
  /** TPM2_ActivateCredential: the secret that only this TPM can open. */
  activate(credential: Buffer): Promise<Buffer>;
}

export interface AgentMachine {
  /** SMBIOS system UUID, lower-case text form. */
  readonly systemUuid: string;
  /** MAC of the NIC this boot came through. */
  readonly bootMac: string;
  /** SPKI DER of the attestation key (ECDSA P-256). */
  readonly akPublic: Buffer;
  /** Absent without a TPM: the AK is then unproven. */
  readonly endorsementKey?: EndorsementKey;
  /** ECDSA P-256 over SHA-256 of the bytes, IEEE P1363: r then s, 64 bytes. */
  sign(bytes: Uint8Array): Promise<Buffer>;
  /** LLDPDU after ethertype 88cc; null when no neighbour was heard. */
  lldpFrame(): Promise<Buffer | null>;
  disks(): Promise<AgentDisk[]>;
  /** Makes the firmware boot this disk next. @returns what was done, one line */
  setNextBoot(disk: AgentDisk): Promise<string>;
  /** Restarts the machine. On real hardware it does not return. */
  reboot(): Promise<void>;
  /** Appends and flushes before it returns: what follows it may kill the process. */
  journal(entry: JournalEntry): void;
  /** Whether the journal of this boot has a `started` of the order, by this or an earlier agent process. */
  wasStarted(orderId: string): boolean;
}
