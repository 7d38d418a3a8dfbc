/** Other programs, run with their output where ours goes. */
import { spawn } from 'node:child_process';
import { ROOT } from './paths.mjs';

/** Progress goes to stderr: stdout belongs to what the script is for. */
export const say = (text) => void process.stderr.write(`${text}\n`);

/**
 * Runs a program to its end. Signals to us are passed on, so that stopping us never leaves a child behind.
 * @returns {Promise<{ code: number, tail: string }>} its exit code (128 + n for a signal) and, when captured, the end of its output
 */
export function run(program, args, { env = process.env, capture = false, cwd = ROOT } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: capture ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'] });
    let tail = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => { tail = (tail + chunk).slice(-2000); });
    // A terminal sends Ctrl-C to the child itself; a second one would read as impatience.
    const pass = (signal) => void (signal === 'SIGINT' && process.stdin.isTTY ? undefined : child.kill(signal));
    process.on('SIGINT', pass).on('SIGTERM', pass);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.off('SIGINT', pass).off('SIGTERM', pass);
      resolve({ code: code ?? (signal === 'SIGINT' ? 130 : 143), tail });
    });
  });
}

/** What a script says when it cannot go on: no stack, since nobody has to read our code to understand it. */
export class Stop extends Error {}

/** Runs the script's main part; a Stop becomes one line and exit code 1. */
export async function main(work) {
  try {
    process.exitCode = (await work(process.argv.slice(2))) ?? 0;
  } catch (error) {
    process.exitCode = 1;
    say(error instanceof Stop ? error.message : (error?.stack ?? String(error)));
  }
}
