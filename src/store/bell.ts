/** Tells waiting requests of this process that something changed for a device. Other processes look for themselves. */
import { EventEmitter } from 'node:events';

export interface Bell {
  ring(deviceId: string): void;
  /** Resolves at the next ring, after `ms`, or when `signal` aborts. */
  wait(deviceId: string, ms: number, signal?: AbortSignal): Promise<void>;
}

export function createBell(): Bell {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    ring: (deviceId) => void emitter.emit(deviceId),
    wait: (deviceId, ms, signal) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          emitter.off(deviceId, done);
          signal?.removeEventListener('abort', done);
          resolve();
        };
        const timer = setTimeout(done, ms);
        emitter.on(deviceId, done);
        signal?.addEventListener('abort', done);
        if (signal?.aborted) done();
      }),
  };
}
