/** The house as a real process: `metalflow up` from dist/, to be killed and started again over the same data. */
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface HouseAddresses {
  readonly pid: number;
  readonly operator: string;
  readonly agent: string;
  readonly metadata: string;
  readonly bootHttp: string;
  readonly tftpPort: number;
  readonly syslogPort: number;
}

export interface HouseProcess {
  readonly addresses: HouseAddresses;
  readonly exited: Promise<number | null>;
  isRunning(): boolean;
  /** kill -9. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const ROOT = process.cwd();

/** A house that is not up by then never will be. */
const UP_MS = 120_000;

/** @throws with the end of its log when it does not come up; it has ended then */
export async function startHouseProcess(env: Readonly<Record<string, string>>, logFile: string, args: readonly string[] = ['up']): Promise<HouseProcess> {
  const child: ChildProcess = spawn(process.execPath, ['--enable-source-maps', join(ROOT, 'dist', 'bin.js'), ...args], { cwd: ROOT, env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let tail = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-4000);
    appendFileSync(logFile, chunk);
  });
  // Not `exit`: what it said last may still be on its way then.
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const addresses = await new Promise<HouseAddresses>((resolve, reject) => {
    const limit = setTimeout(() => child.kill('SIGKILL'), UP_MS);
    void exited.then((code) => reject(new Error(`the house ended with ${code} before it was up:\n${tail}`))).finally(() => clearTimeout(limit));
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const parsed = line.startsWith('{"up"') ? (JSON.parse(line) as { up: HouseAddresses }) : null;
      if (!parsed) return;
      clearTimeout(limit);
      resolve(parsed.up);
    });
  });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (isRunning()) child.kill(signal);
    await exited;
  };
  return { addresses, exited, isRunning, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') };
}
