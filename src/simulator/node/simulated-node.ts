/**
 * A node without hardware: firmware that netboots over real sockets, iPXE, the netboot system with our agent in it, and the
 * installed system that boots from what the agent wrote. Its folder is the machine: another process that opens it has the same
 * disks, key, boot order and journal.
 */
import { EventEmitter } from 'node:events';
import { mkdirSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { issuesText, Mac, MachineUuid } from '../../contracts/primitives.js';
import { MetalflowError } from '../../domain/errors.js';
import type { Logger } from '../../telemetry/log.js';
import { openAttestationKey } from './attestation-key.js';
import type { Behaviours } from './behaviours.js';
import type { OneTimeBoot } from './boot-devices.js';
import { boot } from './boot.js';
import { openDiskFiles, type DiskFile, type DiskSpec } from './disk-file.js';
import type { FirmwareSettings } from './firmware.js';
import { SEED_DEFAULTS, type SeedSettings } from './installed/installed-system.js';
import type { ReadDiskFile } from './installed/seed.js';
import type { SyslogSettings } from './hook-syslog.js';
import { openJournal, type JournalEntry } from './journal.js';
import type { Life } from './life.js';
import type { AgentDisk } from '../../contracts/agent-machine.js';
import type { StartAgent } from './machine.js';
import { fitsState, type AwaitedState, type NodeState } from './node-state.js';
import { openNvram, type BootDevice } from './nvram.js';
import { createPower, type Power } from './power.js';
import { realSleep, type Sleep } from './sleep.js';

export interface SimulatedNodeOptions {
  /** The machine itself: made when it is missing, and never shared by two nodes at a time. */
  readonly dir: string;
  readonly systemUuid: string;
  /** The first is the NIC that boots. */
  readonly macs: readonly string[];
  readonly disks: readonly DiskSpec[];
  readonly firmware: FirmwareSettings;
  /** For a kernel without arguments; by default `metalflow_url` of the kernel's command line. */
  readonly agentApi?: string;
  /** Where the netboot system logs to; by default nobody hears it. */
  readonly syslog?: SyslogSettings;
  readonly startAgent: StartAgent;
  /** The agent's view of a disk that is a file. */
  readonly openDisk: (disk: DiskFile) => Promise<AgentDisk>;
  readonly readDiskFile: ReadDiskFile;
  /** LLDPDU after ethertype 88cc; null when the switch says nothing. */
  readonly lldpFrame?: Buffer | null;
  readonly seed?: Partial<SeedSettings>;
  readonly behaviours?: Behaviours;
  readonly log: Logger;
  readonly now?: () => Date;
  readonly sleep?: Sleep;
}

export interface SimulatedNode {
  /** Does nothing on a node that is on. Resolves once firmware runs. */
  powerOn(boot: OneTimeBoot): Promise<void>;
  /** As if the plug were pulled: nothing runs once the call returns; the promise is for what still closes. */
  powerOff(): Promise<void>;
  /** Off and on again, in one go; nothing on a node that is off. */
  reset(boot?: OneTimeBoot): Promise<void>;
  state(): NodeState;
  readonly events: EventEmitter<{ state: [NodeState] }>;
  /** Resolves at once when the node is in that state. Rejects with the signal's reason. */
  waitFor(wanted: AwaitedState, signal: AbortSignal): Promise<NodeState>;
  journal(): JournalEntry[];
  bootOrder(): readonly BootDevice[];
  disks(): readonly DiskFile[];
  /** Merged over what is there; a switch is taken off by undefined. @throws setting_invalid for a second disk that does not fit */
  setBehaviours(change: Behaviours): void;
  /** Powers off and lets go of the folder. */
  close(): Promise<void>;
}

/** Milliseconds that whatever ran may take to tidy up after a power cut. */
const SETTLE_LIMIT = 10_000;

const Identity = z.object({ systemUuid: MachineUuid, macs: z.array(Mac).min(1).max(16) });

function checkOptions({ systemUuid, macs, firmware }: SimulatedNodeOptions): z.infer<typeof Identity> {
  const identity = Identity.safeParse({ systemUuid, macs });
  if (!identity.success) throw new MetalflowError('setting_invalid', { name: 'simulated node', why: issuesText(identity.error) });
  if (!isIPv4(firmware.tftp.host)) throw new MetalflowError('setting_invalid', { name: 'firmware.tftp.host', why: 'next-server is an IPv4 address' });
  return identity.data;
}

/**
 * Opens the machine in `dir`, powered off.
 * @throws MetalflowError `setting_invalid` for a UUID, MAC, address or disk that does not fit, or a disk of another size than its file
 */
export function createSimulatedNode(options: SimulatedNodeOptions): SimulatedNode {
  const { dir, now = () => new Date(), sleep = realSleep, log } = options;
  const { systemUuid, macs } = checkOptions(options);
  mkdirSync(dir, { recursive: true });
  const disksFolder = join(dir, 'disks');
  const key = openAttestationKey(join(dir, 'ak.pem'));
  const journal = openJournal({ path: join(dir, 'journal.jsonl'), now });
  const nvram = openNvram({ path: join(dir, 'nvram.json'), onReset: () => journal.write('nvram-reset') });
  const events = new EventEmitter<{ state: [NodeState] }>();
  // Every wait for a state listens.
  events.setMaxListeners(0);
  const closing = new AbortController();
  let behaviours: Behaviours = { ...options.behaviours };
  let state: NodeState = { name: 'off' };
  let power: Power | null = null;
  let turn: Promise<void> = Promise.resolve();

  const disksWith = ({ secondDisk }: Behaviours): readonly DiskFile[] => openDiskFiles({ folder: disksFolder, disks: secondDisk ? [...options.disks, secondDisk] : options.disks });
  let disks = disksWith(behaviours);
  const show = (shown: NodeState): void => {
    state = shown;
    const { name, ...facts } = shown;
    journal.write('state', { state: name, ...facts });
    log.info({ node: systemUuid, state: name, ...facts }, 'simulated node');
    events.emit('state', shown);
  };

  /** Power buttons are pressed one after the other, however fast. */
  const inTurn = (press: () => Promise<void> | void): Promise<void> => {
    const pressed = turn.then(press);
    turn = pressed.catch(() => undefined);
    return pressed;
  };

  function switchOn(oneTime: OneTimeBoot): void {
    if (power || closing.signal.aborted) return;
    const mine = (power = createPower());
    const live = (): boolean => power === mine && !mine.signal.aborted;
    const life: Life = {
      power: mine, systemUuid, macs, key, nvram, sleep,
      // A machine without power writes nothing any more.
      journal: { ...journal, write: (event, fields) => live() && journal.write(event, fields) },
      disks: () => disks,
      firmware: options.firmware,
      agentApi: options.agentApi,
      syslog: options.syslog ?? null,
      seed: { ...SEED_DEFAULTS, ...options.seed },
      seedFolder: join(dir, 'seeds'),
      lldpFrame: options.lldpFrame ?? null,
      startAgent: options.startAgent,
      openDisk: options.openDisk,
      readDiskFile: options.readDiskFile,
      behaviours: () => behaviours,
      enter: (entered) => live() && show(entered),
      freeze(why) {
        if (!live()) return;
        mine.cut();
        show({ name: 'halted', why });
      },
      restart() {
        if (live()) void reset('disk');
      },
    };
    mine.follow(boot(life, oneTime).catch((error: unknown) => {
      log.error({ err: error, node: systemUuid }, 'the simulated node crashed');
      life.freeze(`crashed: ${String(error).slice(0, 200)}`);
    }));
  }

  async function settle(old: Power): Promise<void> {
    if ((await old.settled(SETTLE_LIMIT)) === 'still-running') log.warn({ node: systemUuid }, 'something still runs after the power was cut');
  }

  function powerOff(): Promise<void> {
    power?.cut();
    return inTurn(async () => {
      if (!power) return;
      const old = power;
      old.cut();
      power = null;
      show({ name: 'off' });
      await settle(old);
    });
  }

  function reset(oneTime: OneTimeBoot = 'disk'): Promise<void> {
    power?.cut();
    return inTurn(async () => {
      if (!power) return;
      const old = power;
      old.cut();
      power = null;
      await settle(old);
      switchOn(oneTime);
    });
  }

  return {
    powerOn: (oneTime) => inTurn(() => switchOn(oneTime)),
    powerOff,
    reset,
    events,
    state: () => state,
    waitFor: (wanted, signal) => new Promise((resolve, reject) => {
      const over = AbortSignal.any([signal, closing.signal]);
      const done = (finish: () => void): void => {
        events.off('state', look);
        over.removeEventListener('abort', giveUp);
        finish();
      };
      const look = (shown: NodeState): void => {
        if (fitsState(shown, wanted)) done(() => resolve(shown));
      };
      const giveUp = (): void => done(() => reject(over.reason as Error));
      if (over.aborted) return giveUp();
      events.on('state', look);
      over.addEventListener('abort', giveUp);
      look(state);
    }),
    journal: () => journal.read(),
    bootOrder: () => nvram.bootOrder(),
    disks: () => disks,
    setBehaviours(change) {
      const changed = { ...behaviours, ...change };
      disks = disksWith(changed);
      behaviours = changed;
    },
    async close() {
      closing.abort(new Error('the simulated node is closed'));
      await powerOff();
      journal.close();
    },
  };
}
