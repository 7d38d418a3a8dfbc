/** Programs of the netboot system, run with a limit and without a shell. */
import { execFile } from 'node:child_process';
import { MetalflowError } from '../domain/errors.js';

export interface ProgramOptions {
  readonly limitMs?: number;
}

/** @returns stdout as bytes @throws action_failed with the program's exit and its last words */
export function runProgram(program: string, args: readonly string[], { limitMs = 60_000 }: ProgramOptions = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: 4 * 1024 * 1024, encoding: 'buffer' }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const exit = error.killed ? `no end within ${limitMs} ms` : String(error.code ?? error.signal);
      reject(new MetalflowError('action_failed', { action: program, exit, tail: (stderr.toString('utf8').trim() || error.message).slice(-500) }, { cause: error }));
    });
  });
}
