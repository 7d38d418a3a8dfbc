/**
 * Who else answers? Asks as a client would, before the proxy gives its first answer: of two proxies on one network a firmware takes
 * whichever is quicker, and nobody could say which boot a node gets.
 */
import type { Socket } from 'node:dgram';
import { realTimers, type Timers } from '../patience.js';
import { HTTP_CLIENT, MESSAGE, messageTypeOf, OPTION, PXE_CLIENT, vendorClassOf } from './options.js';
import { NO_ADDRESS, readDhcp, writeDhcp, type DhcpPacket } from './packet.js';
import { bindShared, closed } from './sockets.js';

export interface AddressServer {
  readonly address: string;
  /** It names a boot file of its own, which firmware may take before ours. */
  readonly namesBootFile: boolean;
}

export type ProbeResult =
  | { readonly kind: 'another-proxy'; readonly address: string }
  /** Nobody else offers a boot without an address. Without address servers no client can boot, whatever we offer. */
  | { readonly kind: 'clear'; readonly addressServers: readonly AddressServer[] };

export interface ProbeDeps {
  /** Of ours, on the network that is asked. */
  readonly address: string;
  /** Hears broadcasts. */
  readonly listen?: string;
  readonly broadcast?: string;
  readonly serverPort?: number;
  readonly clientPort?: number;
  /** 0 to 1, for transaction ids and a MAC that no machine has. */
  readonly random?: () => number;
  /** How long answers are waited for. */
  readonly waitMs?: number;
  readonly timers?: Timers;
}

/** Some proxies answer one kind only: BIOS, UEFI by PXE on x86 and ARM, UEFI by HTTP. */
const KINDS = [
  { vendorClass: `${PXE_CLIENT}:Arch:00000:UNDI:002001`, arch: 0 },
  { vendorClass: `${PXE_CLIENT}:Arch:00007:UNDI:003016`, arch: 7 },
  { vendorClass: `${PXE_CLIENT}:Arch:00011:UNDI:003016`, arch: 11 },
  { vendorClass: `${HTTP_CLIENT}:Arch:00016:UNDI:003016`, arch: 16 },
] as const;
/** An address server may look for three seconds whether an address is free before it offers it. */
const WAIT_MS = 4000;
/** One packet may be lost; asked again after each. */
const AGAIN_MS = [1000, 2000] as const;

/** @throws port_in_use, port_forbidden, address_not_here when the client's port cannot be listened on */
export async function probeDhcp({
  address, listen = NO_ADDRESS, broadcast = '255.255.255.255', serverPort = 67, clientPort = 68, random = Math.random, waitMs = WAIT_MS, timers = realTimers,
}: ProbeDeps): Promise<ProbeResult> {
  const first = Math.floor(random() * 0xffff_ff00);
  const mac = ['02', ...Array.from({ length: 5 }, () => Math.floor(random() * 256).toString(16).padStart(2, '0'))].join(':');
  const hears = await bindShared('the DHCP probe', listen, clientPort);
  // Two sockets, as the server has: broadcasts come to the wildcard, and leave by the interface of the address.
  const says = listen === address ? hears : await bindShared('the DHCP probe', address, hears.address().port).catch(async (error: unknown) => {
    await closed(hears);
    throw error;
  });
  const sockets = [...new Set<Socket>([hears, says])];
  const servers = new Map<string, AddressServer>();
  const cancels: (() => void)[] = [];
  try {
    return await new Promise<ProbeResult>((resolve) => {
      const take = (bytes: Buffer, sender: string): void => {
        const reading = readDhcp(bytes);
        if (reading.kind !== 'packet') return;
        const { packet } = reading;
        if (packet.kind !== 'reply' || packet.mac !== mac || packet.xid - first < 0 || packet.xid - first >= KINDS.length || messageTypeOf(packet.options) !== MESSAGE.offer) return;
        const from = serverOf(packet) ?? sender;
        if (packet.yiaddr === NO_ADDRESS) {
          if (vendorClassOf(packet.options) !== null) resolve({ kind: 'another-proxy', address: from });
          return;
        }
        const namesBootFile = packet.file !== '' || packet.options.has(OPTION.bootFile) || (servers.get(from)?.namesBootFile ?? false);
        servers.set(from, { address: from, namesBootFile });
      };
      for (const socket of sockets) {
        socket.on('message', (bytes, sender) => take(bytes, sender.address));
        // What cannot be sent or read is heard as silence, of which the caller warns.
        socket.on('error', () => undefined);
      }
      const ask = (): void => KINDS.forEach((kind, index) => says.send(discover(kind, first + index, mac), serverPort, broadcast, () => undefined));
      ask();
      cancels.push(...AGAIN_MS.filter((ms) => ms < waitMs).map((ms) => timers.after(ms, ask)));
      cancels.push(timers.after(waitMs, () => resolve({ kind: 'clear', addressServers: [...servers.values()] })));
    });
  } finally {
    for (const cancel of cancels) cancel();
    await Promise.all(sockets.map(closed));
  }
}

function serverOf({ options }: DhcpPacket): string | null {
  const bytes = options.get(OPTION.serverId);
  return bytes?.length === 4 ? bytes.join('.') : null;
}

function discover({ vendorClass, arch }: (typeof KINDS)[number], xid: number, mac: string): Buffer {
  const uuid = Buffer.concat([Buffer.of(0), Buffer.from(mac.replaceAll(':', ''), 'hex'), Buffer.alloc(10)]);
  return writeDhcp({
    kind: 'request', hops: 0, xid, seconds: 0, broadcast: true, ciaddr: NO_ADDRESS, yiaddr: NO_ADDRESS, siaddr: NO_ADDRESS, giaddr: NO_ADDRESS, mac, serverName: '', file: '',
    options: new Map<number, Buffer>([
      [OPTION.messageType, Buffer.of(MESSAGE.discover)],
      [OPTION.vendorClass, Buffer.from(vendorClass, 'latin1')],
      [OPTION.clientArch, Buffer.of(arch >> 8, arch & 0xff)],
      [OPTION.clientInterface, Buffer.of(1, 3, 16)],
      [OPTION.clientUuid, uuid],
      [OPTION.parameterList, Buffer.of(OPTION.subnetMask, OPTION.router, OPTION.vendorSpecific, OPTION.serverId, OPTION.vendorClass, OPTION.tftpServer, OPTION.bootFile, OPTION.clientUuid)],
    ]),
  });
}
