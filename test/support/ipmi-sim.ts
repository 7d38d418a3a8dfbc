/**
 * OpenIPMI's `ipmi_sim` (Debian package openipmi) as a BMC whose machine is a folder: a chassis script, which the simulator calls with
 * `get` and `set` of `power` and `boot`, keeps both in files. Written for each test into a folder of its own.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createIpmiBmc, type IpmiDeps } from '../../src/bmc/ipmi/client.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { reservePort } from './ports.js';
import { until } from './until.js';

export const MACHINE_UUID = '4c4c4544-0039-3010-8048-b7c04f4d4b32';
/** As most BMCs send it: SMBIOS order. */
const GUID = '44454c4c390010308048b7c04f4d4b32';
export const PASSWORD = 'P@ssw0rd1!';

/** @throws saying which Debian package is missing */
export function requireIpmiTools(): void {
  for (const [path, name] of [['/usr/bin/ipmitool', 'ipmitool'], ['/usr/bin/ipmi_sim', 'openipmi']] as const) {
    if (!existsSync(path)) throw new Error(`${path} is missing: apt-get install ${name}`);
  }
}

export interface IpmiSim {
  readonly port: number;
  /** What the chassis script was told: `set power 1`, `set boot pxe`, in order. */
  told(): Promise<string[]>;
  /** A person presses the button. */
  press(power: 'on' | 'off'): Promise<void>;
  /** From now on: no call of the chassis script ends before this is taken back; or each fails. */
  wrong(how: 'busy' | 'fails' | 'nothing'): Promise<void>;
  /** Boot parameter 5 as ipmitool reads it back. */
  bootFlags(): Promise<string>;
  open(options?: Partial<Omit<IpmiDeps, 'address'>> & { username?: string; password?: string; systemUuid?: string }): Bmc;
  close(): Promise<void>;
}

const SCRIPT = `#!/bin/sh
# ipmi_sim: <mc> get|set <name> [value] …
D=$(dirname "$0")
while [ -e "$D/busy" ]; do sleep 0.1; done
[ -e "$D/fails" ] && { echo 'the fuse blew' >&2; exit 1; }
shift
verb=$1; shift
case $verb in
get) for name in "$@"; do echo "$name:$(cat "$D/$name")"; done ;;
set) while [ $# -ge 2 ]; do printf '%s' "$2" > "$D/$1"; echo "set $1 $2" >> "$D/told"; shift 2; done ;;
esac
`;

export async function startIpmiSim(): Promise<IpmiSim> {
  requireIpmiTools();
  const folder = await mkdtemp(join(tmpdir(), 'metalflow-ipmi-'));
  const port = await reservePort();
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'power'), '0');
  await writeFile(join(folder, 'boot'), 'default');
  await writeFile(join(folder, 'told'), '');
  await writeFile(join(folder, 'chassis.sh'), SCRIPT);
  await chmod(join(folder, 'chassis.sh'), 0o755);
  await writeFile(join(folder, 'lan.conf'), [
    'name "metalflow"', 'set_working_mc 0x20', '  startlan 1', `    addr 127.0.0.1 ${port}`, '    priv_limit admin',
    ...['callback', 'user', 'operator', 'admin'].map((level) => `    allowed_auths_${level} none md2 md5 straight`),
    `    guid ${GUID}`, '  endlan', `  chassis_control "${join(folder, 'chassis.sh')} 0x20"`,
    `  user 2 true "admin" "${PASSWORD}" admin 10 none md2 md5 straight`, `  user 3 true "operator" "${PASSWORD}" operator 10 none md2 md5 straight`, '',
  ].join('\n'));
  await writeFile(join(folder, 'emu.cmd'), ['mc_setbmc 0x20', 'mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02', 'sel_enable 0x20 1000 0x0a', 'mc_enable 0x20', ''].join('\n'));
  const simulator: ChildProcess = spawn('/usr/bin/ipmi_sim', ['-c', join(folder, 'lan.conf'), '-f', join(folder, 'emu.cmd'), '-s', join(folder, 'state'), '-n'], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => void simulator.once('close', () => resolve()));

  const opened: Bmc[] = [];
  const sim: IpmiSim = {
    port,
    told: async () => (await readFile(join(folder, 'told'), 'utf8')).split('\n').filter(Boolean),
    press: (power) => writeFile(join(folder, 'power'), power === 'on' ? '1' : '0'),
    async wrong(how) {
      for (const one of ['busy', 'fails']) await rm(join(folder, one), { force: true });
      if (how !== 'nothing') await writeFile(join(folder, how), '');
    },
    bootFlags: () => new Promise((resolve) => {
      const tool = spawn('/usr/bin/ipmitool', ['-I', 'lanplus', '-H', '127.0.0.1', '-p', String(port), '-U', 'admin', '-E', '-C', '3', 'chassis', 'bootparam', 'get', '5'], { env: { IPMI_PASSWORD: PASSWORD } });
      let text = '';
      tool.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
      tool.on('close', () => resolve(text));
    }),
    open({ username = 'admin', password = PASSWORD, systemUuid = MACHINE_UUID, ...options } = {}) {
      const bmc = createIpmiBmc({ address: { type: 'ipmi', host: '127.0.0.1', port, systemUuid }, credentials: { username, password }, secret: 'bmc-ipmi', log: silentLogger(), ...options, timeouts: { pauseMs: 10, ...options.timeouts } });
      opened.push(bmc);
      return bmc;
    },
    async close() {
      // A script that waits would outlive its simulator.
      await sim.wrong('nothing');
      await Promise.all(opened.map((bmc) => bmc.close()));
      simulator.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
  // It is up when it answers.
  const isUp = await until('ipmi_sim answers', async () => simulator.exitCode !== null || (await sim.bootFlags()).includes('Boot parameter'), 120).then(() => simulator.exitCode === null, () => false);
  if (isUp) return sim;
  await sim.close();
  throw new Error('ipmi_sim does not answer');
}
