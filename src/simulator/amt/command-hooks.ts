/** Commands of the operator that are run when a simulated machine is powered: they may drive a virtual machine. */
import { spawn } from 'node:child_process';
import type { Logger } from '../../telemetry/log.js';
import type { SimulatedMachine } from './power-state.js';

/** One run of a command. */
export interface HookRun {
  readonly at: string;
  readonly power: 'on' | 'off';
  /** From where it boots; null when powered off. */
  readonly boot: 'network' | 'disk' | null;
  readonly result: 'done' | 'failed' | 'timed-out' | 'not-started' | 'stopped';
  /** Exit status; null when a signal ended it, or it never began. */
  readonly exit: number | null;
  /** The last of what it wrote, or why it did not start. */
  readonly output: string;
}

export interface HookReport {
  readonly runs: number;
  readonly failures: number;
  readonly last: HookRun | null;
}

export type Command = readonly [program: string, ...args: string[]];

export interface CommandHooksDeps {
  /** null: nothing is run. */
  readonly on: Command | null;
  readonly off: Command | null;
  /** What the commands find in their environment, besides METALFLOW_AMT_*. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Logger;
  /** Milliseconds for which one may run. */
  readonly limitMs?: number;
  readonly now?: () => Date;
}

export interface HookedMachine extends SimulatedMachine {
  report(): HookReport;
}

export interface CommandHooks {
  /** @param port asked for when a command is run */
  machine(endpoint: { readonly machineUuid: string; readonly port: () => number }): HookedMachine;
  /** Ends what runs; resolves when it has ended. */
  close(): Promise<void>;
}

const LIMIT_MS = 30_000;
const GRACE_MS = 2000;
/** A fleet that is powered at once must not start hundreds of processes at once. */
const AT_ONCE = 8;
const OUTPUT_KEPT = 2000;

export function createCommandHooks({ on, off, env, log, limitMs = LIMIT_MS, now = () => new Date() }: CommandHooksDeps): CommandHooks {
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  let free = AT_ONCE;
  const waiting: (() => void)[] = [];

  async function oneOfFew<Result>(work: () => Promise<Result>): Promise<Result> {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => void waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  }

  /** Resolves when the command has ended, one way or another. */
  function run([program, ...args]: Command, variables: Readonly<Record<string, string>>): Promise<Pick<HookRun, 'result' | 'exit' | 'output'>> {
    if (closing.signal.aborted) return Promise.resolve({ result: 'stopped', exit: null, output: '' });
    return new Promise((resolve) => {
      // A group of its own, so that what it started in turn ends with it.
      const child = spawn(program, args, { env: { ...env, ...variables }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
      let output = '';
      let ended: 'timed-out' | 'stopped' | null = null;
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => void (output = (output + chunk.toString()).slice(-OUTPUT_KEPT))).on('error', () => undefined);

      const kill = (signal: NodeJS.Signals): void => {
        try {
          process.kill(-child.pid!, signal);
        } catch {
          // It has ended meanwhile.
        }
      };
      let hard: NodeJS.Timeout | undefined;
      const end = (why: 'timed-out' | 'stopped'): void => {
        if (child.pid === undefined || ended) return;
        ended = why;
        kill('SIGTERM');
        hard = setTimeout(kill, GRACE_MS, 'SIGKILL');
      };
      const stop = (): void => end('stopped');
      const limit = setTimeout(end, limitMs, 'timed-out');
      closing.signal.addEventListener('abort', stop);

      const finish = (result: HookRun['result'], exit: number | null, text = output): void => {
        clearTimeout(limit);
        clearTimeout(hard);
        closing.signal.removeEventListener('abort', stop);
        // What it left running may hold the pipes; we wait for nobody.
        child.stdout.destroy();
        child.stderr.destroy();
        resolve({ result, exit, output: text });
      };
      child.once('error', (error) => finish('not-started', null, error.message));
      child.once('exit', (code) => setImmediate(() => {
        if (ended) kill('SIGKILL');
        finish(ended ?? (code === 0 ? 'done' : 'failed'), code);
      }));
    });
  }

  return {
    machine({ machineUuid, port }) {
      let [runs, failures] = [0, 0];
      let last: HookRun | null = null;

      async function powered(command: Command | null, power: 'on' | 'off', boot: 'network' | 'disk' | null): Promise<void> {
        if (!command) return;
        const at = now().toISOString();
        const variables = { METALFLOW_AMT_UUID: machineUuid, METALFLOW_AMT_PORT: String(port()), METALFLOW_AMT_POWER: power, METALFLOW_AMT_BOOT: boot ?? '' };
        const work = oneOfFew(() => run(command, variables));
        running.add(work);
        const ended = await work.finally(() => running.delete(work));
        last = { at, power, boot, ...ended };
        runs += 1;
        if (ended.result === 'done') return;
        failures += 1;
        log.warn({ machineUuid, port: port(), power, ...ended }, 'the power command failed');
      }

      return {
        powerOn: (boot) => powered(on, 'on', boot),
        powerOff: () => powered(off, 'off', null),
        report: () => ({ runs, failures, last }),
      };
    },
    async close() {
      closing.abort();
      while (running.size > 0) await Promise.all(running);
    },
  };
}
