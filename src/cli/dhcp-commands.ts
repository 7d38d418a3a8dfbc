/** `metalflow dhcp …`: what the site's DHCP server has to say so that nodes find the boot plane. Prints; changes nothing. */
import type { Command } from 'commander';
import type { Config } from '../config/index.js';
import { ipv4, ipv4Network, ipv4Range } from './option-text.js';
import { asJson, printable, type Terminal } from './output.js';
import { DHCP_SERVERS, type DhcpConfigOptions, type DhcpServer, type Roles } from './roles.js';

export interface DhcpCommandDeps {
  readonly terminal: Terminal;
  readonly roles: () => Promise<Roles>;
  /** @throws setting_unknown, setting_invalid */
  readonly config: (role: 'cli') => Config;
}

const HELP: { readonly [server in DhcpServer]: string } = {
  kea: 'print a configuration of Kea (kea-dhcp4): boot files by architecture and by device',
  dnsmasq: 'print the same for dnsmasq',
};

interface DhcpFlags {
  readonly serverAddress?: string;
  readonly subnet?: NonNullable<DhcpConfigOptions['subnet']>;
  readonly pool?: NonNullable<DhcpConfigOptions['pool']>;
  readonly json?: boolean;
}

/** Adds `dhcp` and its commands to the program. */
export function addDhcpCommands(program: Command, { terminal, roles, config }: DhcpCommandDeps): void {
  const dhcp = program.command('dhcp').description("what the site's DHCP server has to say");
  for (const server of DHCP_SERVERS) {
    dhcp.command(`${server}-config`).description(HELP[server])
      .option('--server-address <address>', 'IPv4 address of the boot plane as nodes reach it; without it, that of METALFLOW_ASSETS_URL or METALFLOW_BIND_ADDRESS', ipv4)
      .option('--subnet <network>', 'network whose addresses the DHCP server gives (10.0.0.0/24); without it, the site adds its own', ipv4Network)
      .option('--pool <from-to>', 'its addresses for whoever asks (10.0.0.100-10.0.0.200)', ipv4Range)
      .option('--json', 'print {config, devices, warnings} as JSON')
      .action(async ({ serverAddress, subnet, pool, json }: DhcpFlags) => {
        const printed = await (await roles()).dhcpConfig(config('cli'), { server, serverAddress: serverAddress ?? null, subnet: subnet ?? null, pool: pool ?? null });
        if (json) return terminal.out(asJson(printed));
        for (const warning of printed.warnings) terminal.err(`warning: ${printable(warning)}\n`);
        terminal.out(printed.config);
      });
  }
}
