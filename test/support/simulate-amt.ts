/** `metalflow simulate amt` as a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface SimulatedEndpoint {
  readonly endpoint: number;
  /** Of WS-Man. */
  readonly amt: string;
  readonly port: number;
  readonly machineUuid: string;
  readonly fingerprint?: string;
}

export interface SimulateAmtProcess {
  readonly pid: number;
  readonly endpoints: readonly SimulatedEndpoint[];
  /** Ends with a slash; needs `--control-port 0` among the words. */
  readonly control: string;
  /** SIGTERM. @returns its exit code */
  stop(): Promise<number | null>;
}

/** @param words after `simulate amt`; free ports and JSON are asked for. Resolves when it is ready */
export async function startSimulateAmt(...words: string[]): Promise<SimulateAmtProcess> {
  const child = spawn(process.execPath, [join(__dirname, '..', '..', 'dist', 'bin.js'), 'simulate', 'amt', '--port-base', '0', '--control-port', '0', '--json', ...words], { env: { PATH: process.env['PATH'] ?? '' }, stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4000)));
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const endpoints: SimulatedEndpoint[] = [];
  const control = await new Promise<string>((resolve, reject) => {
    let url = '';
    void exited.then((code) => reject(new Error(`simulate amt ended with ${code}: ${errors}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said = JSON.parse(line) as { amt?: string; control?: string; ready?: object };
      if (said.amt) endpoints.push({ ...(said as SimulatedEndpoint), port: Number(new URL(said.amt).port) });
      if (said.control) url = said.control;
      if (said.ready) resolve(url);
    });
  });
  return {
    pid: child.pid!,
    endpoints,
    control,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
      return exited.finally(() => clearTimeout(timer));
    },
  };
}
