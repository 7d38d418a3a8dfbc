/** What every role gives back, and how a role runs until it is told to stop. */
import type { HttpServer } from '../telemetry/http.js';
import { isWildcard, listenAddress, listenRefusal } from '../telemetry/listening.js';

export interface RunningRole {
  close(): Promise<void>;
}

/** Closes in the reverse order of opening; one that fails does not keep the others open. */
export function createCloser(): { add(close: () => Promise<unknown> | unknown): void; close(): Promise<void> } {
  const open: (() => Promise<unknown> | unknown)[] = [];
  return {
    add: (close) => void open.push(close),
    async close() {
      const errors: unknown[] = [];
      for (const close of open.splice(0).reverse()) await Promise.resolve().then(close).catch((error: unknown) => errors.push(error));
      if (errors.length > 0) throw errors[0];
    },
  };
}

/** @returns the port it got. @throws port_in_use, port_forbidden, address_not_here */
export async function listen(server: HttpServer, what: string, host: string, port: number): Promise<number> {
  try {
    await server.listen({ host: await listenAddress(host), port });
  } catch (error) {
    throw await listenRefusal({ what, transport: 'tcp', address: host, port }, error);
  }
  return (server.server.address() as { port: number }).port;
}

/** Resolves at SIGINT or SIGTERM. The Temporal runtime takes these for itself too, so a role has to end by its own word. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve());
  });
}

export const urlOf = (scheme: 'http' | 'https', host: string, port: number): string => `${scheme}://${isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
