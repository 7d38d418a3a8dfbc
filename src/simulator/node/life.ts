/** What the parts of one simulated node share during one power-on. */
import type { AttestationKey } from './attestation-key.js';
import type { Behaviours } from './behaviours.js';
import type { SyslogSettings } from './hook-syslog.js';
import type { DiskFile } from './disk-file.js';
import type { FirmwareSettings } from './firmware.js';
import type { SeedSettings } from './installed/installed-system.js';
import type { ReadDiskFile } from './installed/seed.js';
import type { Journal } from './journal.js';
import type { AgentDisk } from '../../contracts/agent-machine.js';
import type { StartAgent } from './machine.js';
import type { NodeState } from './node-state.js';
import type { Nvram } from './nvram.js';
import type { Power } from './power.js';
import type { Sleep } from './sleep.js';

export interface Life {
  readonly power: Power;
  readonly systemUuid: string;
  readonly macs: readonly string[];
  readonly firmware: FirmwareSettings;
  readonly agentApi: string | undefined;
  /** Null: nobody hears what it logs. */
  readonly syslog: SyslogSettings | null;
  readonly seed: SeedSettings;
  readonly seedFolder: string;
  readonly key: AttestationKey;
  readonly nvram: Nvram;
  readonly journal: Journal;
  readonly sleep: Sleep;
  readonly lldpFrame: Buffer | null;
  readonly startAgent: StartAgent;
  readonly openDisk: (disk: DiskFile) => Promise<AgentDisk>;
  readonly readDiskFile: ReadDiskFile;
  /** Asked whenever it matters, so that a test may change it midway. */
  readonly behaviours: () => Behaviours;
  /** All disks, `secondDisk` included. */
  readonly disks: () => readonly DiskFile[];
  /** Does nothing once this power is cut. */
  readonly enter: (state: NodeState) => void;
  /** Everything stops, and the power stays on. */
  readonly freeze: (why: string) => void;
  /** A warm restart, asked by what runs on the machine. */
  readonly restart: () => void;
}
