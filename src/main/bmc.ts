/** `metalflow bmc …`: a person at one BMC, from where they sit, by the rules of the house. */
import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { bmcKey, bmcName } from '../activities/bmc-lease.js';
import { createHand, type HandCommand } from '../bmc/by-hand.js';
import { examine } from '../bmc/doctor.js';
import { machineBehind } from '../bmc/machine-seen.js';
import type { Config } from '../config/index.js';
import type { Bmc } from '../contracts/bmc.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { BmcAsk, BmcReport, BmcStatus, BmcTarget, HandOrder } from '../contracts/power-by-hand.js';
import type { BmcLeaseTerms } from '../contracts/store.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import { powerWord } from '../domain/power.js';
import type { Store } from '../store/index.js';
import { silentLogger } from '../telemetry/log.js';
import { findTarget, refuseADevicesBmc, type Found } from './bmc-target.js';
import { openBmcs } from './bmcs.js';
import { openNetbox } from './house.js';
import { openStore } from './open-store.js';
import { createCloser } from './role.js';

/** Seconds that a person waits for whoever talks to the BMC now. */
const LEASE_PATIENCE_SECONDS = 60;
const LEASE_AGAIN_MS = 250;
const RENEWALS_A_LEASE = 4;

type Order = Extract<BmcAsk, HandOrder>;
const isOrder = (ask: BmcAsk): ask is Order => ask.what === 'on' || ask.what === 'off' || ask.what === 'pxe';

interface Place {
  readonly config: Config;
  readonly store: Store;
  readonly netbox: NetboxClient;
  readonly found: Found;
  readonly tell: (text: string) => void;
}

/** @throws node_not_found, device_invalid, netbox_unreachable, store_unavailable, bmc_* */
export async function bmcByHand(config: Config, target: BmcTarget, ask: BmcAsk, tell: (text: string) => void): Promise<BmcReport> {
  const closer = createCloser();
  try {
    const store = await openStore(config);
    closer.add(() => store.close());
    const netbox = openNetbox(config, silentLogger());
    closer.add(() => netbox.close());
    const found = await findTarget(target, store, netbox);
    const place = { config, store, netbox, found, tell };
    if (isOrder(ask)) {
      await refuseADevicesBmc(found, store);
      refuseDuringRun(found, ask);
    }
    return await withLease(place, async (bmc, lease) => {
      if (isOrder(ask)) return command(ask, bmc, lease, place);
      const expected = found.device?.systemUuid ?? null;
      if (ask.what === 'doctor') return { what: 'doctor', ...found.subject, checks: await examine(bmc, { expected, hasDevice: found.device !== null, addresses: found.device?.addresses ?? null }) };
      return { what: 'status', ...found.subject, ...(await status(bmc, expected)) };
    });
  } finally {
    await closer.close();
  }
}

/** Asked again by the store, in the same breath in which the intent is written. */
function refuseDuringRun({ subject: { device } }: Found, { duringRun, reason }: HandOrder): void {
  if (duringRun && !reason) throw new MetalflowError('reason_required', { verb: 'a command during a run' });
  if (device !== null && device.openRun !== null && !duringRun) throw new MetalflowError('bmc_run_open', { node: device.name, run: device.openRun });
}

async function status(bmc: Bmc, expected: string | null): Promise<Omit<BmcStatus, 'device' | 'bmc'>> {
  const reading = await bmc.observePower();
  return { power: powerWord(reading), why: reading.kind === 'read' ? null : reading.why, machine: await machineBehind(bmc, expected), identity: reading.kind === 'unknown' ? null : await bmc.identify() };
}

/** A command goes to the machine that is meant; of a bare address nobody said which that is. */
async function refuseUnlessRight(bmc: Bmc, { device, address }: Found, store: Store): Promise<void> {
  const began = performance.now();
  const machine = await machineBehind(bmc, device?.systemUuid ?? null);
  if (machine.kind === 'unread' && machine.code !== null) {
    const seconds = Math.ceil((performance.now() - began) / 1000);
    throw new MetalflowError(machine.code, { address: bmcName(address), secret: `bmc-${address.type}`, why: machine.why, seconds, step: 'reading the machine UUID', value: machine.why, meaning: machine.why });
  }
  if (device === null || machine.kind === 'same') return;
  // A UUID that an approver let pass; empty: an unreadable one.
  if ((await store.devices.find(device.id))?.approvedUuid === ('uuid' in machine ? machine.uuid : '')) return;
  if (machine.kind === 'differs') throw new MetalflowError('bmc_is_another_machine', { found: machine.uuid, expected: machine.expected });
  throw new MetalflowError('bmc_uuid_unreadable');
}

async function command(ask: Order, bmc: Bmc, lease: BmcLeaseTerms, place: Place): Promise<BmcReport> {
  const { config: { limits }, store, found, tell } = place;
  await refuseUnlessRight(bmc, found, store);
  const by = ask.by ?? userInfo().username;
  const word = (step: HandCommand): string => (step === 'network' ? 'one boot from the network' : `power ${step}`);
  const why = `by ${by}'s hand (metalflow bmc ${ask.what})${ask.reason ? `: ${ask.reason}` : ''}`;
  const hand = createHand({
    bmc, address: bmcName(found.address), sleep: (ms) => sleep(ms), clock: () => performance.now(), tell,
    limits: { powerSeconds: limits.poweringOff, settlingSeconds: limits.settling, pollSeconds: limits.powerPoll },
    async intend(step) {
      const { device } = found;
      if (device === null) {
        if (!(await store.power.lock(lease.bmc, lease.holder, lease.seconds))) throw new MetalflowError('bmc_busy', { address: lease.bmc });
        return async () => undefined;
      }
      const id = `by-hand/${randomUUID()}`;
      const written = await store.power.intendByHand(device.id, { id, command: step, text: `${word(step)} asked ${why}`, by, duringRun: ask.duringRun }, lease);
      if (written.kind === 'lease-lost') throw new MetalflowError('bmc_busy', { address: lease.bmc });
      if (written.kind === 'run-open') throw new MetalflowError('bmc_run_open', { node: device.name, run: written.run });
      return (answer) => store.power.answered(id, answer);
    },
  });
  const steps: HandCommand[] = ask.what !== 'pxe' ? [ask.what] : ask.reboot ? ['off', 'network', 'on'] : ['network'];
  const commands: ('on' | 'off')[] = [];
  for (const step of steps) {
    try {
      if (step === 'network') await hand.arm();
      else if ((await hand.power(step)) === 'nothing-to-do') continue;
      else commands.push(step);
      await record(`${word(step)} ${step === 'network' ? 'armed' : 'seen'} ${why}`, by, place);
    } catch (error) {
      await record(`${word(step)} ended with ${isMetalflowError(error) ? error.code : 'an error'}, ${why}`, by, place);
      throw error;
    }
  }
  const power = powerWord(await bmc.observePower());
  if (found.device) await store.devices.setPower(found.device.id, power);
  return { what: ask.what, ...found.subject, power, commands, armed: ask.what === 'pxe' };
}

/** In the device's journal here, and in NetBox's where it can be reached. */
async function record(text: string, by: string, { found: { device }, store, netbox, tell }: Place): Promise<void> {
  if (!device) return;
  await store.devices.journal(device.id, null, 'power', text, by);
  await netbox.addJournalEntry(device.id, 'info', text).catch((error: Error) => tell(`NetBox's journal was not written: ${error.message}`));
}

/** Nobody else talks to the BMC meanwhile: the lease is renewed as long as this process lives. @throws bmc_busy */
async function withLease({ config, store, found }: Place, work: (bmc: Bmc, lease: BmcLeaseTerms) => Promise<BmcReport>): Promise<BmcReport> {
  const lease: BmcLeaseTerms = { bmc: bmcKey(found.address), holder: `by hand: ${userInfo().username}, pid ${process.pid}`, seconds: config.limits.bmcLock };
  const take = (): Promise<boolean> => store.power.lock(lease.bmc, lease.holder, lease.seconds);
  const until = performance.now() + LEASE_PATIENCE_SECONDS * 1000;
  while (!(await take())) {
    if (performance.now() >= until) throw new MetalflowError('bmc_busy', { address: lease.bmc });
    await sleep(LEASE_AGAIN_MS);
  }
  const bmc = await openBmcs(config, silentLogger()).open(found.address).catch(async (error: unknown) => {
    await store.power.unlock(lease.bmc, lease.holder);
    throw error;
  });
  // Whoever finds it over has taken it: what is under way is hung up on.
  const renewal = setInterval(() => void take().then((held) => (held ? undefined : bmc.close()), () => undefined), (lease.seconds * 1000) / RENEWALS_A_LEASE);
  try {
    return await work(bmc, lease);
  } finally {
    clearInterval(renewal);
    await bmc.close();
    await store.power.unlock(lease.bmc, lease.holder);
  }
}
