/** The command line: words in, an exit code out. 0 done, 1 refused or failed, 2 wrong use. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Command, CommanderError } from 'commander';
import type { Config, ConfigRole } from '../config/index.js';
import { MetalflowError } from '../domain/errors.js';
import { addBmcCommands } from './bmc-commands.js';
import { addDhcpCommands } from './dhcp-commands.js';
import { addDoctorCommand } from './doctor.js';
import { addNodeCommands } from './node-commands.js';
import { createOperatorClient, type OperatorClient } from './operator-client.js';
import { errorOf, printError, type Terminal } from './output.js';
import { addRoleCommands } from './role-commands.js';
import type { Roles } from './roles.js';

export type ExitCode = 0 | 1 | 2;

export interface CliDeps {
  readonly version: string;
  readonly terminal: Terminal;
  /** Asked for only by the commands that run something: listing nodes need not load the Temporal SDK. */
  readonly roles: () => Promise<Roles>;
  readonly readConfig: (role: ConfigRole) => Config;
}

async function tokenOf(given: string | undefined, config: Config): Promise<string> {
  const known = given ?? config.operatorToken;
  if (known) return known;
  try {
    const token = (await readFile(path.join(config.secretsDir, 'operator-token'), 'utf8')).trim();
    if (token) return token;
  } catch {
    // No file, or none for us to read: both mean that no token was given.
  }
  throw new MetalflowError('operator_token_missing');
}

/** Every command that may print JSON understands `--json`, also when its other words are wrong. */
const wantsJson = (argv: readonly string[]): boolean => argv.includes('--json');

/** @param argv the words after `metalflow` */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<ExitCode> {
  const { terminal } = deps;
  let code: ExitCode = 0;
  const exit = (refused: 1): void => { code = refused; };
  const client = async (options: { url?: string; token?: string }): Promise<OperatorClient> => {
    const config = deps.readConfig('cli');
    return createOperatorClient({ url: options.url ?? config.operatorUrl, token: await tokenOf(options.token, config) });
  };

  const program = new Command('metalflow')
    .description('Takes bare-metal nodes from a NetBox device to an attested, installed node and back out.')
    .version(deps.version)
    .exitOverride()
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .showHelpAfterError('(--help says how)');
  addRoleCommands(program, { roles: deps.roles, config: deps.readConfig });
  addNodeCommands(program, { terminal, client, exit });
  addBmcCommands(program, { terminal, roles: deps.roles, config: deps.readConfig, exit });
  addDhcpCommands(program, { terminal, roles: deps.roles, config: deps.readConfig });
  addDoctorCommand(program, { terminal, roles: deps.roles, config: deps.readConfig, exit });

  try {
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    // commander has printed its own; asking for help or the version ends with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    printError(terminal, errorOf(error), wantsJson(argv));
    return 1;
  }
}
