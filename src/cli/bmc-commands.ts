/** `metalflow bmc …`: one BMC, from where the person sits; the secret is that of the secrets folder. */
import { Option, type Command } from 'commander';
import type { Config } from '../config/index.js';
import { BMC_TYPES } from '../contracts/device.js';
import type { BmcAsk, BmcTarget, BmcType } from '../contracts/power-by-hand.js';
import { bmcView } from './bmc-views.js';
import { fingerprint, port } from './option-text.js';
import { asJson, printable, type Terminal } from './output.js';
import type { Roles } from './roles.js';

export interface BmcCommandDeps {
  readonly terminal: Terminal;
  readonly roles: () => Promise<Roles>;
  /** @throws setting_unknown, setting_invalid */
  readonly config: (role: 'cli') => Config;
  readonly exit: (code: 1) => void;
}

interface Flags {
  readonly type?: BmcType;
  readonly port?: number;
  readonly fingerprint?: string;
  readonly json?: boolean;
  readonly as?: string;
  readonly reason?: string;
  readonly duringRun?: boolean;
  readonly reboot?: boolean;
}

const HELP = {
  status: 'read the power, and which machine it is',
  on: 'power the machine on, and see it on',
  off: 'power the machine off, and see it off',
  pxe: 'arm one boot from the network',
  doctor: 'look for what keeps this BMC from doing its work; changes nothing',
} as const;

type What = keyof typeof HELP;

function askOf(what: What, { as, reason, duringRun = false, reboot = false }: Flags): BmcAsk {
  if (what === 'status' || what === 'doctor') return { what };
  const order = { by: as ?? null, reason: reason ?? null, duringRun };
  return what === 'pxe' ? { what, reboot, ...order } : { what, ...order };
}

/** Adds `bmc` and its commands to the program. */
export function addBmcCommands(program: Command, { terminal, roles, config, exit }: BmcCommandDeps): void {
  const bmc = program.command('bmc').description('talk to one BMC; beside a run, a person has to insist');
  for (const [what, description] of Object.entries(HELP) as [What, string][]) {
    const command = bmc.command(what).description(description)
      .argument('<target>', 'name or NetBox device id; with --type, an address')
      .addOption(new Option('--type <type>', 'the target is an address of such a BMC').choices(BMC_TYPES.filter((type) => type !== 'manual')))
      .option('--port <port>', 'TCP or UDP port of the BMC', port)
      .option('--fingerprint <sha256>', 'certificate to trust, and no other', fingerprint)
      .option('--json', 'print JSON');
    if (what !== 'status' && what !== 'doctor') {
      command
        .option('--as <name>', 'who asks; without it, the user of this session')
        .option('--reason <text>', 'why; kept with the name')
        .option('--during-run', 'also while a run of the node is open; needs a reason');
    }
    if (what === 'pxe') command.option('--reboot', 'power off and on again, so that the armed boot is used');
    command.action(async (name: string, flags: Flags) => {
      const target: BmcTarget = { name, type: flags.type ?? null, port: flags.port ?? null, fingerprint: flags.fingerprint ?? null };
      const report = await (await roles()).bmc(config('cli'), target, askOf(what, flags), (text) => terminal.err(`${printable(text)}\n`));
      terminal.out(flags.json ? asJson(report) : bmcView(report, terminal.isTerminal));
      if (report.what === 'doctor' ? report.checks.some(({ result }) => result === 'bad') : report.what === 'status' && report.why !== null) exit(1);
    });
  }
}
