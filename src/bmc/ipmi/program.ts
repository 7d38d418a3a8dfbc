/** Runs ipmitool once: without a shell, with the password in its environment only, with a limit, ended by its pid. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';

export type ProgramEnd =
  | { readonly kind: 'ended'; readonly exit: number; readonly stdout: string; readonly stderr: string }
  /** Ended by us: the limit passed, or the conversation was closed. What it had said until then is kept. */
  | { readonly kind: 'cut-off'; readonly why: string; readonly stdout: string; readonly stderr: string }
  /** This host had no process or file descriptor for it: nothing was asked of anybody. */
  | { readonly kind: 'not-started'; readonly why: string }
  | { readonly kind: 'missing' };

export interface ProgramCall {
  readonly args: readonly string[];
  /** Never in `args`, which every user of this host may read. */
  readonly password: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** Tests put something else in its place. */
export type RunProgram = (call: ProgramCall) => Promise<ProgramEnd>;

/** Characters of each stream that are kept; what comes after is read and dropped. */
const MOST_OUTPUT = 64 * 1024;
/** Ours, not the operator's: what is found does not hang on who started the worker. */
const SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

// The code alone: the message may hold the arguments.
const notStarted = (error: NodeJS.ErrnoException): ProgramEnd => ({ kind: 'not-started', why: `ipmitool could not be started: ${error.code ?? error.name}` });

/** @param program a name that is looked up in the usual folders, or a path */
export const createProgram = (program: string, start: (program: string, args: readonly string[], options: SpawnOptions) => ChildProcess = spawn): RunProgram => ({ args, password, limitMs, signal }) =>
  new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = start(program, args, { env: { PATH: SEARCH_PATH, LC_ALL: 'C', IPMI_PASSWORD: password }, stdio: ['ignore', 'pipe', 'pipe'] });
    } catch (error) {
      return resolve(notStarted(error as Error));
    }
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      // Without a free file descriptor there is no child and no stream, and the error comes as an event.
      child[stream]?.setEncoding('utf8').on('data', (text: string) => (said[stream] = (said[stream] + text).slice(0, MOST_OUTPUT)));
    }
    let cutOff: string | null = null;
    const cut = (why: string): void => {
      cutOff ??= why;
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => cut(`no end within ${limitMs} ms`), limitMs);
    const onAbort = (): void => cut('given up: the time for this call is over');
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    const settle = (end: ProgramEnd): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      resolve(end);
    };
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'EACCES') return settle({ kind: 'missing' });
      // One that runs could not be signalled: its end is still to come.
      if (child.pid === undefined) settle(notStarted(error));
    });
    child.on('close', (code) => settle(cutOff === null ? { kind: 'ended', exit: code ?? -1, ...said } : { kind: 'cut-off', why: cutOff, ...said }));
  });
