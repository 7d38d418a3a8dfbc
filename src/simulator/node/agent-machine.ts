/** The machine that the agent of one boot runs on, with the node's faults in its disks and its journal. */
import { guardDisk } from './guarded-disk.js';
import type { Life } from './life.js';
import type { AgentMachine } from '../../contracts/agent-machine.js';

export function createAgentMachine(life: Life, bootMac: string): AgentMachine {
  const { power, key, journal, nvram, sleep, behaviours } = life;
  const started = new Set<string>();
  let working = { action: '', bytes: 0 };

  /** Bytes that the running action may still write before the machine dies of it. */
  const bytesToLive = (): number => {
    const { dieAt } = behaviours();
    return dieAt?.action === working.action ? Math.max(0, (dieAt.afterBytes ?? 0) - working.bytes) : Infinity;
  };
  const dieIfTime = (): void => {
    if (bytesToLive() === 0) life.freeze(`died at ${working.action} after ${working.bytes} bytes`);
  };
  const guard = {
    signal: power.signal,
    sleep,
    bytesPerSecond: () => behaviours().slowBytesPerSecond,
    admit: (length: number) => Math.min(length, bytesToLive()),
    wrote: (bytes: number) => {
      working.bytes += bytes;
      dieIfTime();
    },
    lateBy: () => behaviours().lateReport,
  };

  return {
    systemUuid: behaviours().wrongUuid ?? life.systemUuid,
    bootMac,
    akPublic: key.publicKey,
    sign: async (bytes) => key.sign(bytes),
    lldpFrame: async () => life.lldpFrame,
    disks: async () => Promise.all(life.disks().map(async (disk) => guardDisk(await life.openDisk(disk), guard))),
    async setNextBoot({ serial }) {
      if (power.signal.aborted) throw new Error('the machine has no power');
      nvram.bootDiskFirst(serial);
      journal.write('next-boot', { serial });
      const late = behaviours().lateReport;
      if (late) await sleep(late, power.signal);
      return `disk ${serial} is first in the boot order`;
    },
    async reboot() {
      life.restart();
      if (!power.signal.aborted) await new Promise((resolve) => power.signal.addEventListener('abort', resolve, { once: true }));
    },
    journal(entry) {
      if (power.signal.aborted) return;
      journal.write('agent', { orderId: entry.orderId, action: entry.action, what: entry.what, ...(entry.disk !== undefined && { disk: entry.disk }) });
      if (entry.what !== 'started') return;
      started.add(entry.orderId);
      working = { action: entry.action, bytes: 0 };
      dieIfTime();
    },
    wasStarted: (orderId) => started.has(orderId),
  };
}
