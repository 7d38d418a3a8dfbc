/** docs/commands.md: the command line, drawn from the commands as they are built. */
import { Command } from 'commander';
import { addBmcCommands } from '../../cli/bmc-commands.js';
import { addDhcpCommands } from '../../cli/dhcp-commands.js';
import { addDoctorCommand } from '../../cli/doctor.js';
import { addNodeCommands } from '../../cli/node-commands.js';
import { addRoleCommands } from '../../cli/role-commands.js';
import { code, page, table } from './markdown.js';

const unused = (): never => {
  throw new Error('the commands are described here, not run');
};

/** The program without anything behind it. */
export function describedProgram(): Command {
  const program = new Command('metalflow');
  const terminal = { out: unused, err: unused, isTerminal: false };
  addRoleCommands(program, { roles: unused, config: unused });
  addNodeCommands(program, { terminal, client: unused, exit: unused });
  addBmcCommands(program, { terminal, roles: unused, config: unused, exit: unused });
  addDhcpCommands(program, { terminal, roles: unused, config: unused });
  addDoctorCommand(program, { terminal, roles: unused, config: unused, exit: unused });
  return program;
}

/** Commands that do something, with the words that lead to them. */
export function leavesOf(command: Command, path: readonly string[] = []): { readonly words: readonly string[]; readonly command: Command }[] {
  if (command.commands.length === 0) return [{ words: path, command }];
  return command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]));
}

/** Understood by every command of a client. */
const COMMON = ['--json', '--url', '--token'];

const argumentText = ({ registeredArguments }: Command): string =>
  registeredArguments.map((argument) => (argument.required ? ` <${argument.name()}>` : ` [${argument.name()}]`)).join('');

function optionsText(command: Command): string {
  const own = command.options.filter(({ long }) => !COMMON.includes(long ?? ''));
  return own
    .map(({ flags, description, argChoices, mandatory }) => {
      const what = description || (argChoices ? `one of ${argChoices.join(', ')}` : '');
      return `${code(flags)}${mandatory ? ' (needed)' : ''}${what && `: ${what}`}`;
    })
    .join('; ');
}

export const commandsPage = (): string => page(
  'Commands',
  'Exit codes: 0 done, 1 refused or failed (the code of [errors.md](errors.md) is printed), 2 wrong use. Every command takes `--json`. The `node` commands are a client of the operator plane: `--url` (`METALFLOW_OPERATOR_URL`) says where it is, and the token comes from `--token`, `METALFLOW_OPERATOR_TOKEN` or the file `operator-token` of the secrets folder. `<node>` is a name or a NetBox device id.',
  table(['command', 'does', 'options'], leavesOf(describedProgram()).map(({ words, command }) =>
    [code(`metalflow ${words.join(' ')}${argumentText(command)}`), command.description(), optionsText(command)])),
);
