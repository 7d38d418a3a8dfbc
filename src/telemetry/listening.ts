/** How every role opens a port: on both families where the address is a wildcard, and with an error that says what to do where it is refused. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { MetalflowError } from '../domain/errors.js';
import { findPortHolders, holdersText, type Transport } from './port-holder.js';

/** A port, as it is asked for. */
export interface Door {
  /** In words: `TFTP`, `the boot plane`. */
  readonly what: string;
  readonly transport: Transport;
  readonly address: string;
  readonly port: number;
}

/** What a plane says of one of its ports. */
export type ListenerState =
  | { readonly state: 'listening'; readonly address: string }
  /** Not wanted; `why` names the setting. */
  | { readonly state: 'off'; readonly why: string }
  | { readonly state: 'failed'; readonly why: string };
export type Listeners = Readonly<Record<string, ListenerState>>;

export const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::';

/** `10.0.0.1:69`, `[::]:69`. */
export const addressText = (address: string, port: number): string => `${address.includes(':') ? `[${address}]` : address}:${port}`;

/**
 * Where to listen for an address of the settings: on `::`, which takes both families, where it is a wildcard. Nodes boot over IPv4; what else
 * speaks IPv6 is served as well. A host without IPv6 has only the old wildcard.
 */
export async function listenAddress(address: string): Promise<string> {
  if (!isWildcard(address)) return address;
  return (await bindsBothFamilies()) ? '::' : '0.0.0.0';
}

function bindsBothFamilies(): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host: '::', port: 0 }, () => probe.close(() => resolve(true)));
  });
}

/** Below this, a port needs a privilege (ip(7)); 1024 unless the host says otherwise. */
async function firstFreePort(): Promise<number> {
  const text = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '');
  return /^\d+\s*$/.test(text) ? Number(text) : 1024;
}

/** The refusal of a bind as a row of our table: `port_in_use` with who holds it, `port_forbidden`, `address_not_here`. Never throws. */
export async function listenRefusal({ what, transport, address, port }: Door, error: unknown, proc?: string): Promise<MetalflowError> {
  const { code, message } = error as NodeJS.ErrnoException;
  const about = { what, address: addressText(address, port) };
  if (code === 'EACCES' || code === 'EPERM') return new MetalflowError('port_forbidden', { ...about, first: await firstFreePort() }, { cause: error });
  if (code === 'EADDRNOTAVAIL') return new MetalflowError('address_not_here', about, { cause: error });
  const holders = code === 'EADDRINUSE' ? holdersText(await findPortHolders(transport, port, proc)) : null;
  return new MetalflowError('port_in_use', { ...about, why: holders ? `${holders} holds ${transport} port ${port}` : message }, { cause: error });
}
