/** `metalflow doctor`: is everything there that a role needs? Looks, and changes nothing. */
import type { Command } from 'commander';
import type { Config } from '../config/index.js';
import { isMetalflowError } from '../domain/errors.js';
import { asJson, printable, table, type Terminal } from './output.js';
import type { DoctorCheck, Roles } from './roles.js';

export interface DoctorDeps {
  readonly terminal: Terminal;
  readonly roles: () => Promise<Roles>;
  readonly config: (role: 'cli') => Config;
  readonly exit: (code: 1) => void;
}

/** The settings come first: with bad ones, nothing else can be looked for. */
async function checksOf(deps: DoctorDeps): Promise<DoctorCheck[]> {
  let config: Config;
  try {
    config = deps.config('cli');
  } catch (error) {
    if (!isMetalflowError(error)) throw error;
    return [{ name: 'settings', result: 'bad', found: error.message, hint: error.toFailure().hint }];
  }
  return [{ name: 'settings', result: 'good', found: 'all of them can be read' }, ...(await (await deps.roles()).doctor(config))];
}

export function doctorView(checks: readonly DoctorCheck[], isTerminal: boolean): string {
  const shown = table(['CHECK', 'RESULT', 'FOUND'], checks.map(({ name, result, found }) => [name, result, found]), isTerminal);
  const hints = checks.filter(({ result, hint }) => result !== 'good' && hint).map(({ name, hint }) => `${printable(name)}: ${printable(hint!)}\n`);
  return hints.length === 0 ? shown : `${shown}\n${hints.join('')}`;
}

export function addDoctorCommand(program: Command, deps: DoctorDeps): void {
  program.command('doctor').description('look for what is missing or wrong; changes nothing').option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const checks = await checksOf(deps);
      deps.terminal.out(json ? asJson({ checks }) : doctorView(checks, deps.terminal.isTerminal));
      if (checks.some(({ result }) => result === 'bad')) deps.exit(1);
    });
}
