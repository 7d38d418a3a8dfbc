/** The program: hands the command line its terminal, its settings, and main. */
import { readFileSync } from 'node:fs';
import { runCli, type Roles } from './cli/index.js';
import { readConfig } from './config/index.js';

/** main constructs everything; loaded only when something is to run, since it brings the Temporal SDK along. */
const MAIN = './main/index.js';
async function loadRoles(): Promise<Roles> {
  const { createRoles } = (await import(MAIN)) as { createRoles: () => Roles };
  return createRoles();
}

// `metalflow node list | head` closes our output early; that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

process.exitCode = await runCli(process.argv.slice(2), {
  version,
  terminal: {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY ?? false,
  },
  roles: loadRoles,
  readConfig: (role) => readConfig(undefined, role),
});
// What a role left open must not keep a finished program alive; output gets this long to be written.
setTimeout(() => process.exit(), 2000).unref();
