/** The store's doors, one a plane. */
import { DEFAULT_LIMITS, type Limits } from '../domain/limits.js';
import type { AttestationDesk, OrderDesk, SeedDesk } from '../contracts/agent-desk.js';
import type { BootDirectory } from '../contracts/boot.js';
import type { MetadataDirectory } from '../contracts/metadata.js';
import type { NetbootDevices } from '../contracts/dhcp.js';
import type { HookLedger, NodeDirectory } from '../contracts/operator.js';
import type { PowerWatchStore } from '../contracts/power-watch.js';
import type { HandIntents, PowerStore, Stores } from '../contracts/store.js';
import type { Tally } from '../contracts/tally.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { createAttestationDesk } from './attestation-desk.js';
import { createAttemptStore } from './attempts.js';
import { createBell } from './bell.js';
import { createBootDirectory } from './boot-directory.js';
import type { Db } from './database.js';
import { createDeviceStore } from './devices.js';
import { createFence } from './fence.js';
import { createInstallationStore } from './installation.js';
import { createHookLedger, createNodeDirectory } from './node-directory.js';
import { createNetbootDevices } from './netboot-devices.js';
import { createOrderDesk } from './order-desk.js';
import { createOrderLedger } from './orders.js';
import { createOutbox, type Outbox } from './outbox.js';
import { createPermissionStore } from './permissions.js';
import { createPowerStore } from './power.js';
import { createPowerWatchStore } from './power-watch.js';
import { createMetadataDirectory } from './metadata-directory.js';
import { createNodeLogs, type NodeLogs } from './node-logs.js';
import { forgetBefore } from './retention.js';
import { createRefusedDevices } from './refused-devices.js';
import { createRunStore } from './runs.js';
import { createSeedDesk } from './seed-desk.js';
import { createTally } from './tally.js';

export { MEMORY_URL, openDatabase, openMadeDatabase, type Db } from './database.js';
export type { Outbox, OutboxMessage, OutboxRow } from './outbox.js';

export interface Store extends Stores {
  readonly power: PowerStore & HandIntents;
  readonly outbox: Outbox;
  readonly powerWatch: PowerWatchStore;
  readonly boot: BootDirectory;
  readonly netbootDevices: NetbootDevices;
  readonly attestation: AttestationDesk;
  readonly orderDesk: OrderDesk;
  readonly seeds: SeedDesk;
  readonly nodes: NodeDirectory;
  readonly hooks: HookLedger;
  readonly metadata: MetadataDirectory;
  readonly logs: NodeLogs;
  readonly tally: Tally;
  /** Forgets what is older and no longer needed. @returns rows forgotten */
  forget(before: Date): Promise<number>;
  close(): Promise<void>;
}

export interface StoreDeps {
  readonly db: Db;
  /** Only the worker role has one; the planes never ask Temporal. */
  readonly temporal: Pick<TemporalPort, 'look'>;
  readonly now?: () => Date;
  readonly limits?: Limits;
  /** Called when a row was put into the outbox, so that a deliverer in the same process need not wait for its next look. */
  readonly woken?: () => void;
  readonly crash?: CrashPoint;
}

export function createStore({ db, temporal, now = () => new Date(), limits = DEFAULT_LIMITS, woken = () => undefined, crash = noCrash }: StoreDeps): Store {
  const bell = createBell();
  const base = { db, now };
  const plane = { ...base, woken, crash, limits };
  return {
    fence: createFence({ ...base, temporal }),
    devices: createDeviceStore(base),
    refused: createRefusedDevices(base),
    installation: createInstallationStore(base),
    runs: createRunStore({ ...base, limits }),
    attempts: createAttemptStore(base),
    permissions: createPermissionStore(base),
    orders: createOrderLedger({ ...base, changed: bell.ring, crash }),
    power: createPowerStore(base),
    powerWatch: createPowerWatchStore(base),
    outbox: createOutbox(base),
    boot: createBootDirectory(plane),
    netbootDevices: createNetbootDevices(base),
    attestation: createAttestationDesk(plane),
    orderDesk: createOrderDesk({ ...plane, bell }),
    seeds: createSeedDesk(plane),
    nodes: createNodeDirectory(base),
    hooks: createHookLedger({ db }),
    metadata: createMetadataDirectory({ db }),
    logs: createNodeLogs(base),
    tally: createTally({ db }),
    forget: (before) => forgetBefore(db, before),
    close: () => db.destroy(),
  };
}
