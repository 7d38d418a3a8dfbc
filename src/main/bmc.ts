/** `metalflow bmc …`: a person at one BMC, from where they sit, by the rules of the house. */
import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { bmcName } from '../activities/bmc-lease.js';
import { createHand, type Hand } from '../bmc/by-hand.js';
import type { Config } from '../config/index.js';
import type { Bmc } from '../contracts/bmc.js';
import type { BmcAddress, Device } from '../contracts/device.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { BmcAsk, BmcReport, BmcTarget, HandOrder, HandSubject, MachineSeen } from '../contracts/power-by-hand.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import { powerWord, type BmcProblemCode } from '../domain/power.js';
import { parseUuid } from '../domain/uuid.js';
import { silentLogger } from '../telemetry/log.js';
import type { Store } from '../store/index.js';
import { examine } from './bmc-doctor.js';
import { openBmcs } from './bmcs.js';
import { openNetbox } from './house.js';
import { openStore } from './open-store.js';
import { createCloser } from './role.js';

/** Seconds that a person waits for whoever talks to the BMC now. */
const LEASE_PATIENCE_SECONDS = 60;
const LEASE_AGAIN_MS = 250;

/** What is behind the words of a person. */
export interface Found {
  readonly address: BmcAddress;
  readonly device: Device | null;
  readonly subject: HandSubject;
}

/** @throws node_not_found, device_invalid, netbox_unreachable, store_unavailable, bmc_* */
export async function bmcByHand(config: Config, target: BmcTarget, ask: BmcAsk, tell: (text: string) => void): Promise<BmcReport> {
  const closer = createCloser();
  try {
    const store = await openStore(config);
    closer.add(() => store.close());
    const netbox = openNetbox(config, silentLogger());
    closer.add(() => netbox.close());
    const found = await find(target, store, netbox);
    if ('by' in ask) refuseUnlessFree(found.subject, ask);
    return await withLease(config, store, found.address, async (bmc, keepLease) => {
      const address = bmcName(found.address);
      const { limits } = config;
      const hand = createHand({
        bmc, address, keepLease, sleep: (ms) => sleep(ms), clock: () => performance.now(), tell,
        limits: { powerSeconds: limits.poweringOff, settlingSeconds: limits.settling, pollSeconds: limits.powerPoll },
      });
      if (ask.what === 'doctor') return { what: 'doctor', ...found.subject, checks: await examine({ bmc, found, hand, keepLease }) };
      if (ask.what === 'status') return { what: 'status', ...found.subject, ...(await status(bmc, hand, found)) };
      const began = performance.now();
      const machine = await machineBehind(bmc, found);
      if (machine.kind === 'unread' && machine.code !== null) throw refusedRead(machine.code, machine.why, found.address, Math.ceil((performance.now() - began) / 1000));
      refuseUnlessRight(machine, found, (found.device && (await store.devices.find(found.device.id))?.approvedUuid) ?? null);
      return command(ask as Command, hand, found, { store, netbox, tell });
    });
  } finally {
    await closer.close();
  }
}

async function find({ name, type, port, fingerprint }: BmcTarget, store: Store, netbox: NetboxClient): Promise<Found> {
  if (type !== null) {
    const address: BmcAddress = { type, host: name, ...(port !== null && { port }), ...(fingerprint !== null && { fingerprint }) };
    return { address, device: null, subject: { device: null, bmc: { type, address: bmcName(address) } } };
  }
  const node = await store.nodes.find(name);
  const id = node?.deviceId ?? (/^\d{1,10}$/.test(name) ? name : null);
  const device = id === null ? null : await netbox.readDevice(id);
  if (device === null) throw new MetalflowError('node_not_found', { node: name });
  if (device.bmc === null) throw new MetalflowError('device_invalid', { field: 'bmc_type', what: 'says no BMC' });
  const address = { ...device.bmc, ...(port !== null && { port }), ...(fingerprint !== null && { fingerprint }) };
  return { address, device, subject: { device: { id: device.id, name: device.name, openRun: node?.openRun ?? null }, bmc: { type: address.type, address: bmcName(address) } } };
}

function refuseUnlessFree({ device }: HandSubject, { duringRun, reason }: HandOrder): void {
  if (device === null || device.openRun === null) return;
  if (!duringRun) throw new MetalflowError('bmc_run_open', { node: device.name, run: device.openRun });
  if (!reason) throw new MetalflowError('reason_required', { verb: 'a command during a run' });
}

export async function machineBehind(bmc: Bmc, { device }: Pick<Found, 'device'>): Promise<MachineSeen> {
  const reading = await bmc.machineUuid();
  if (reading.kind !== 'read') return { kind: 'unread', code: reading.kind === 'unknown' ? reading.code : null, why: reading.why };
  const uuid = parseUuid(reading.uuid);
  if (uuid === null) return { kind: 'unread', code: null, why: `${reading.uuid.slice(0, 64)} is no machine UUID` };
  if (!device?.systemUuid) return { kind: 'not-declared', uuid };
  return uuid === device.systemUuid ? { kind: 'same', uuid } : { kind: 'differs', uuid, expected: device.systemUuid };
}

/** A command goes to the machine that is meant; of a bare address nobody said which that is. @param approved a UUID that an approver let pass; empty: an unreadable one */
function refuseUnlessRight(machine: MachineSeen, { device }: Found, approved: string | null): void {
  if (device === null || machine.kind === 'same' || approved === ('uuid' in machine ? machine.uuid : '')) return;
  if (machine.kind === 'differs') throw new MetalflowError('bmc_is_another_machine', { found: machine.uuid, expected: machine.expected });
  throw new MetalflowError('bmc_uuid_unreadable');
}

const refusedRead = (code: BmcProblemCode, why: string, address: BmcAddress, seconds: number): MetalflowError =>
  new MetalflowError(code, { address: bmcName(address), secret: `bmc-${address.type}`, why, seconds, step: 'reading the machine UUID', value: why, meaning: why });

async function status(bmc: Bmc, hand: Hand, found: Found) {
  const reading = await hand.observe();
  return { power: powerWord(reading), why: reading.kind === 'read' ? null : reading.why, machine: await machineBehind(bmc, found), identity: reading.kind === 'unknown' ? null : await bmc.identify() };
}

type Command = Extract<BmcAsk, HandOrder>;

async function command(ask: Command, hand: Hand, found: Found, told: { store: Store; netbox: NetboxClient; tell: (text: string) => void }): Promise<BmcReport> {
  const by = ask.by ?? userInfo().username;
  const steps: ('off' | 'on' | 'arm')[] = ask.what !== 'pxe' ? [ask.what] : ask.reboot ? ['off', 'arm', 'on'] : ['arm'];
  const commands: ('on' | 'off')[] = [];
  const write = (text: string): Promise<void> => record(`${text} by ${by}'s hand (metalflow bmc ${ask.what})${ask.reason ? `: ${ask.reason}` : ''}`, by, found, told);
  for (const step of steps) {
    try {
      if (step === 'arm') await hand.arm();
      else if ((await hand.power(step)) === 'sent') commands.push(step);
      else continue;
      await write(step === 'arm' ? 'one boot from the network armed' : `power ${step}`);
    } catch (error) {
      // Sent or not, it was asked for: whoever looks later has to find it.
      await write(`${step === 'arm' ? 'one boot from the network' : `power ${step}`} asked for, and ${isMetalflowError(error) ? error.code : 'failed'}`);
      throw error;
    }
  }
  const power = powerWord(await hand.observe());
  if (found.device) await told.store.devices.setPower(found.device.id, power);
  return { what: ask.what, ...found.subject, power, commands, armed: ask.what === 'pxe' };
}

/** In the device's journal here, and in NetBox's where it can be reached. */
async function record(text: string, by: string, { device }: Found, { store, netbox, tell }: { store: Store; netbox: NetboxClient; tell: (text: string) => void }): Promise<void> {
  if (!device) return;
  await store.devices.journal(device.id, null, 'power', text, by);
  await netbox.addJournalEntry(device.id, 'info', text).catch((error: Error) => tell(`NetBox's journal was not written: ${error.message}`));
}

/** Nobody else talks to the BMC meanwhile. @throws bmc_busy */
async function withLease(config: Config, store: Store, address: BmcAddress, work: (bmc: Bmc, keepLease: () => Promise<void>) => Promise<BmcReport>): Promise<BmcReport> {
  const key = bmcName(address);
  const holder = `by hand: ${userInfo().username}, pid ${process.pid}`;
  const keepLease = async (): Promise<void> => {
    if (!(await store.power.lock(key, holder, config.limits.bmcLock))) throw new MetalflowError('bmc_busy', { address: key });
  };
  const until = performance.now() + LEASE_PATIENCE_SECONDS * 1000;
  for (;;) {
    try {
      await keepLease();
      break;
    } catch (error) {
      if (!isMetalflowError(error) || error.code !== 'bmc_busy' || performance.now() >= until) throw error;
      await sleep(LEASE_AGAIN_MS);
    }
  }
  try {
    const bmc = await openBmcs(config, silentLogger()).open(address);
    try {
      return await work(bmc, keepLease);
    } finally {
      await bmc.close();
    }
  } finally {
    await store.power.unlock(key, holder);
  }
}
