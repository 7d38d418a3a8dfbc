/** What metalflow uses of the npm package `tftp` 0.1.2, which has no types of its own. */
declare module 'tftp' {
  import type { Readable } from 'node:stream';

  export interface ClientOptions {
    host: string;
    port: number;
    blockSize?: number;
    windowSize?: number;
    /** Milliseconds until a packet is sent again. */
    timeout?: number;
    retries?: number;
  }

  export interface TransferStats {
    blockSize: number;
    windowSize: number;
    size: number | null;
  }

  /** Emits `stats` (TransferStats) once options are agreed, `abort` when aborted by this side. */
  export interface GetStream extends Readable {
    abort(error?: Error | string): void;
  }

  export interface Client {
    createGetStream(remote: string): GetStream;
  }

  const tftp: { createClient(options: ClientOptions): Client };
  export default tftp;
}
