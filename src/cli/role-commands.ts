/** `metalflow up`, the single roles, the demo and the simulators. */
import { Option, type Command } from 'commander';
import type { Config, ConfigRole } from '../config/index.js';
import { POWER_NAMES, type PowerName } from '../domain/power.js';
import { bytes, hostPort, mac, named, port, url, uuid, wholeNumber } from './option-text.js';
import type { AmtEndpointOptions, Roles } from './roles.js';

export interface RoleCommandDeps {
  readonly roles: () => Promise<Roles>;
  /** @throws setting_unknown, setting_invalid */
  readonly config: (role: ConfigRole) => Config;
}

const ROLE_HELP = {
  up: 'every role in one process, on embedded defaults',
  worker: 'workflows, and the activities that touch nodes',
  boot: 'firmware, iPXE, assets and syslog for nodes',
  agentapi: 'attestation, orders, codes and seeds for nodes',
  operatorapi: 'the webhook, nodes, metrics and health for people and NetBox',
} as const satisfies Partial<Record<ConfigRole, string>>;

interface AmtFlags {
  readonly amtHost: string;
  readonly amtPort: number;
  readonly uuid: string;
  readonly amtUsername: string;
  readonly amtPassword: string;
}
const amtOf = (flags: AmtFlags): AmtEndpointOptions => ({ host: flags.amtHost, port: flags.amtPort, machineUuid: flags.uuid, username: flags.amtUsername, password: flags.amtPassword });
const withAmtFlags = (command: Command): Command =>
  command
    .requiredOption('--uuid <uuid>', 'machine UUID', uuid)
    .option('--amt-host <address>', 'address of the AMT endpoint', '127.0.0.1')
    .option('--amt-port <port>', 'TCP port of the AMT endpoint; 0 takes a free one', port, 16_992)
    .option('--amt-username <name>', 'who may command it', 'admin')
    .option('--amt-password <password>', 'of a simulated machine only', 'Simulated-1');

/** Adds the commands that run something of ours. */
export function addRoleCommands(program: Command, deps: RoleCommandDeps): void {
  for (const role of Object.keys(ROLE_HELP) as (keyof typeof ROLE_HELP)[]) {
    program.command(role).description(ROLE_HELP[role]).option('--json', 'print errors as JSON')
      .action(async () => {
        const config = deps.config(role);
        await (await deps.roles())[role](config);
      });
  }

  program.command('demo').description('simulated nodes, their NetBox and their BMCs: provisioned to active, one retired, before your eyes')
    .option('--json', 'the last line is one JSON object')
    .option('--keep', 'leave everything up at the end, until Ctrl-C')
    .option('--nodes <n>', 'how many nodes', wholeNumber(1, 200), 3)
    .option('--data-dir <folder>', 'keep the data here instead of in a temporary folder')
    .action(async (flags: { json?: boolean; keep?: boolean; nodes: number; dataDir?: string }) =>
      (await deps.roles()).demo({ json: flags.json ?? false, keep: flags.keep ?? false, nodes: flags.nodes, dataDir: flags.dataDir ?? null }));

  const simulate = program.command('simulate').description('stand-ins for hardware');
  addSimulateAmt(simulate, deps);
  withAmtFlags(simulate.command('node').description('a machine: AMT, firmware, netboot, agent, disk').option('--json', 'print errors as JSON'))
    .requiredOption('--dir <folder>', 'where the machine lives; the same folder is the same machine')
    .requiredOption('--mac <mac>', 'MAC of its boot NIC', mac)
    .option('--disk-bytes <bytes>', 'size of its disk', bytes, 64 * 1024 * 1024)
    .option('--disk-serial <serial>', 'serial of its disk', 'SIM-0001')
    .option('--tftp <host:port>', 'TFTP server, as DHCP would tell it', hostPort, { host: '127.0.0.1', port: 69 })
    .option('--boot-url <url>', 'boot plane', url, 'http://127.0.0.1:7080')
    .option('--agent-url <url>', 'agent plane; without it, as the kernel arguments say', url)
    .action(async (flags: AmtFlags & { dir: string; mac: string; diskBytes: number; diskSerial: string; tftp: { host: string; port: number }; bootUrl: string; agentUrl?: string }) =>
      (await deps.roles()).simulateNode({
        dir: flags.dir, mac: flags.mac, diskBytes: flags.diskBytes, diskSerial: flags.diskSerial, tftp: flags.tftp, bootUrl: flags.bootUrl, agentUrl: flags.agentUrl ?? null,
        amt: amtOf(flags),
      }));
}

interface SimulateAmtFlags {
  readonly count: number;
  readonly host: string;
  readonly portBase: number;
  readonly uuidBase: string;
  readonly username: string;
  readonly password: string;
  readonly tls?: boolean;
  readonly power: PowerName;
  readonly fault: Readonly<Record<string, string>>;
  readonly controlPort?: number;
  readonly onCommand?: string;
  readonly offCommand?: string;
  readonly json?: boolean;
}

function addSimulateAmt(simulate: Command, { roles }: RoleCommandDeps): void {
  simulate.command('amt').description('Intel AMT endpoints without machines, with the faults of the field as switches (docs/amt-simulator.md)')
    .option('--count <n>', 'how many', wholeNumber(1, 5000), 1)
    .option('--host <address>', 'address they listen on', '127.0.0.1')
    .option('--port-base <port>', 'TCP port of the first, the others follow; 0 takes free ones', port, 16_992)
    .option('--uuid-base <uuid>', 'machine UUID of the first, the others count up', uuid, '6d657461-6c66-4c6f-8000-000000000000')
    .option('--username <name>', 'who may command them', 'admin')
    .option('--password <password>', 'of simulated machines only', 'P@ssw0rd1')
    .option('--tls', 'speak TLS, with a certificate made for this run')
    .addOption(new Option('--power <state>', 'power at the start').choices(Object.values(POWER_NAMES)).default('on'))
    .option('--fault <name=value>', 'throw a switch from the start; may be repeated', named, {})
    .option('--control-port <port>', 'control page on this loopback port; 0 takes a free one', port)
    .option('--on-command <command>', 'run when a machine is powered on')
    .option('--off-command <command>', 'run when a machine is powered off')
    .option('--json', 'print one JSON object a line')
    .action(async ({ fault, ...flags }: SimulateAmtFlags) =>
      (await roles()).simulateAmt({
        ...flags, faults: fault, tls: flags.tls ?? false, controlPort: flags.controlPort ?? null,
        onCommand: flags.onCommand ?? null, offCommand: flags.offCommand ?? null, json: flags.json ?? false,
      }));
}
