/** From power-on to an operating system, or to none. */
import { createAgentMachine } from './agent-machine.js';
import { bootDevices, type OneTimeBoot } from './boot-devices.js';
import { lookAtDisk } from './disk-file.js';
import { createDownloader } from './download.js';
import { bootFromNetwork } from './firmware.js';
import { runInstalledSystem } from './installed/installed-system.js';
import type { Life } from './life.js';
import { createHookSyslog } from './hook-syslog.js';
import { parseCommandLine, startNetbootSystem } from './netboot-system.js';

type DeviceOutcome = { readonly kind: 'booted' } | { readonly kind: 'next-device'; readonly why: string };

const BOOTED: DeviceOutcome = { kind: 'booted' };
const next = (why: string): DeviceOutcome => ({ kind: 'next-device', why });

function runAgent(life: Life, commandLine: string): void {
  const { power, macs, agentApi, journal, behaviours } = life;
  const bootMac = macs[0]!;
  const start = startNetbootSystem({ commandLine, bootMac, macs, agentApi });
  life.enter({ name: 'netboot-system', bootMac: start.kind === 'agent' ? start.bootMac : bootMac, commandLine });
  if (start.kind === 'stuck') return life.freeze(start.why);
  if (behaviours().silentAgent) return journal.write('agent-silent');
  const syslog = sayOverSyslog(life, commandLine, start.api);
  const agent = life.startAgent(createAgentMachine(syslog.life, start.bootMac), start.api);
  const stop = (): void => {
    syslog.close();
    power.follow(Promise.resolve(agent.stop()));
  };
  if (power.signal.aborted) stop();
  else power.signal.addEventListener('abort', stop, { once: true });
}

/** What the agent of this boot does is in the log too, as a real one's output is. */
function sayOverSyslog(life: Life, commandLine: string, api: string): { readonly life: Life; close(): void } {
  const host = parseCommandLine(commandLine).get('syslog_host');
  if (!host || life.syslog === null) return { life, close: () => undefined };
  const hook = createHookSyslog({ ...life.syslog, host });
  hook.say('linuxkit', 'the netboot system is up');
  hook.say('metalflow-agent', `asks ${api}`);
  const { journal } = life;
  const write: typeof journal.write = (event, fields = {}) => {
    if (event === 'agent') hook.say('metalflow-agent', `${String(fields['action'])}: ${String(fields['what'])}`);
    journal.write(event, fields);
  };
  return { life: { ...life, journal: { ...journal, write } }, close: hook.close };
}

async function tryNetwork(life: Life): Promise<DeviceOutcome> {
  const { power, sleep, journal, behaviours, firmware, systemUuid, macs } = life;
  if (behaviours().neverBootsNetwork) return next('no link');
  const downloader = createDownloader({ agent: power.agent, signal: power.signal, sleep, bytesPerSecond: () => behaviours().slowBytesPerSecond });
  const onIpxe = (): void => life.enter({ name: 'ipxe' });
  const outcome = await bootFromNetwork({ settings: firmware, mac: macs[0]!, systemUuid, downloader, sleep, signal: power.signal, journal, onIpxe });
  if (outcome.kind === 'next-device') return outcome;
  for (const { name, bytes, sha256 } of [outcome.kernel, ...outcome.initrds]) journal.write('image', { name, bytes, sha256 });
  runAgent(life, outcome.commandLine);
  return BOOTED;
}

async function tryDisk(life: Life, serial: string | null): Promise<DeviceOutcome> {
  const { power, sleep, journal, readDiskFile } = life;
  const candidates = life.disks().filter((disk) => serial === null || disk.serial === serial);
  const reasons: string[] = [];
  for (const disk of candidates) {
    const look = await lookAtDisk(disk.path);
    if (look.kind === 'not-bootable') {
      reasons.push(`${disk.serial}: ${look.why}`);
      continue;
    }
    power.follow(
      runInstalledSystem({
        folder: life.seedFolder,
        diskPath: disk.path,
        readDiskFile,
        journal,
        http: { agent: power.agent, signal: power.signal, sleep },
        seed: life.seed,
        onProgress: (seed) => life.enter({ name: 'installed-system', serial: disk.serial, seed }),
      }).catch((error: unknown) => life.freeze(`the installed system crashed: ${String(error).slice(0, 200)}`)),
    );
    return BOOTED;
  }
  return next(reasons.join('; ') || 'no such disk');
}

/** Tries the boot devices in turn. Ends when something runs, or nothing can. */
export async function boot(life: Life, oneTime: OneTimeBoot): Promise<void> {
  life.enter({ name: 'firmware' });
  for (const device of bootDevices(life.nvram.bootOrder(), oneTime, life.behaviours())) {
    const outcome = device.kind === 'network' ? await tryNetwork(life) : await tryDisk(life, device.serial);
    if (life.power.signal.aborted || outcome.kind === 'booted') return;
    life.journal.write('next-boot-device', { after: device.kind, why: outcome.why });
    life.enter({ name: 'firmware' });
  }
  life.freeze('no bootable device');
}
