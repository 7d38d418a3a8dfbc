/** Which boot file a client is given. One rule for the proxy and for both printed configurations; the programs are those of the table. */
import type { IpxeProgramName } from '../../domain/client-arch.js';

/** The boot plane as nodes reach it. */
export interface BootPlace {
  /** IPv4 of TFTP: DHCP can name no other, and firmware asks its port 69 only. */
  readonly address: string;
  /** Of the boot plane, without a slash at its end: `http://10.0.0.1:7080`. */
  readonly httpUrl: string;
}

/** What a client can take next: its first program by TFTP or by HTTP, or, once it is iPXE, its script. */
export type BootWant = { readonly by: 'tftp' | 'http'; readonly program: IpxeProgramName } | { readonly by: 'script' };

/**
 * The name or the URL. The MAC is part of it, so that the gate is asked for the device that boots, also where a relay, a NAT or an
 * address that nobody declared hides who asks.
 * @param mac as `domain/mac.ts` writes it, or iPXE's own `${mac}` where the answer is the same for every client
 */
export function bootFileOf(want: BootWant, mac: string, { httpUrl }: Pick<BootPlace, 'httpUrl'>): string {
  switch (want.by) {
    case 'tftp':
      return `${mac}/${want.program}`;
    case 'http':
      return `${httpUrl}/ipxe/binary/${mac}/${want.program}`;
    case 'script':
      return `${httpUrl}/ipxe/script/${mac}/auto.ipxe`;
  }
}
