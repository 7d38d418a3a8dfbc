/** Files of an ext4 file system inside an open disk, without root and without mounting. The work is done by a worker thread. */
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { DiskHandle } from '../contracts/agent-machine.js';

export interface Ext4File {
  readonly name: string;
  readonly content: Buffer;
  readonly mode: number;
}

export interface Ext4Files {
  /**
   * Makes the folder where it is missing, places the files in it (each appears whole or not at all) and reads them back.
   * @returns the files as they lie on the disk afterwards, in the same order; content null when absent
   * @throws plain errors that say what the library said
   */
  place(disk: DiskHandle, partition: { offset: number }, folder: string, files: readonly Ext4File[], signal: AbortSignal): Promise<Ext4Found[]>;
  read(disk: DiskHandle, partition: { offset: number }, folder: string, names: readonly string[], signal: AbortSignal): Promise<Ext4Found[]>;
}
export interface Ext4Found {
  readonly name: string;
  readonly content: Buffer | null;
  readonly mode: number;
}

type Answer = { readonly kind: 'done'; readonly files: readonly { name: string; content: Uint8Array | null; mode: number }[] } | { readonly kind: 'failed'; readonly why: string };

/** From the sources, or beside the bundle that holds this file, or in the agent's folder next to it. */
const PLACES = ['./ext4-worker/ext4-worker.mjs', './ext4-worker.cjs', './agent/ext4-worker.cjs'];

function findWorker(): URL {
  const found = PLACES.map((place) => new URL(place, import.meta.url)).find((url) => existsSync(url));
  if (!found) throw new Error(`the ext4 worker is missing: none of ${PLACES.join(', ')} is there`);
  return found;
}

/** One placing takes well under a second; a thread that is stuck is ended. */
const LIMIT_MS = 120_000;

export function createExt4Files({ worker, limitMs = LIMIT_MS }: { worker?: URL; limitMs?: number } = {}): Ext4Files {
  const ask = (workerData: object, signal: AbortSignal): Promise<Ext4Found[]> =>
    new Promise((resolve, reject) => {
      // Its stdout and stderr are taken and thrown away: a crashing library prints pages of its own source.
      const thread = new Worker(worker ?? findWorker(), { workerData, stdout: true, stderr: true, env: {}, execArgv: [] });
      let finished = false;
      const finish = (act: () => void): void => {
        // The thread's end is an event too, and comes after its answer.
        if (finished) return;
        finished = true;
        clearTimeout(timer);
        signal.removeEventListener('abort', aborted);
        void thread.terminate().then(act, act);
      };
      const fail = (why: string): void => finish(() => reject(new Error(why)));
      const aborted = (): void => fail('stopped');
      const timer = setTimeout(() => fail(`no answer within ${limitMs} ms`), limitMs);
      signal.addEventListener('abort', aborted);
      if (signal.aborted) aborted();
      thread.on('message', (answer: Answer) => {
        if (answer.kind === 'failed') fail(answer.why);
        else finish(() => resolve(answer.files.map((file) => ({ ...file, content: file.content && Buffer.from(file.content) }))));
      });
      thread.on('error', (error) => fail(error.message.slice(0, 300)));
      thread.on('exit', () => fail('the ext4 library ended without an answer'));
    });
  return {
    place: (disk, { offset }, folder, files, signal) => ask({ fd: disk.fd, offset, folder, write: files, read: files.map(({ name }) => name) }, signal),
    read: (disk, { offset }, folder, names, signal) => ask({ fd: disk.fd, offset, folder, write: [], read: names }, signal),
  };
}
