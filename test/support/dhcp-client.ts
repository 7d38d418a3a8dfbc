/** A client of DHCP, as raw packets: what each kind of firmware sends, and what of an answer it takes. */
import { createSocket, type Socket } from 'node:dgram';
import { MESSAGE, OPTION } from '../../src/boot/dhcp/options.js';
import { NO_ADDRESS, readDhcp, writeDhcp, type DhcpPacket } from '../../src/boot/dhcp/packet.js';

export interface ClientKind {
  readonly vendorClass: string;
  readonly arch: number;
  readonly ipxe?: true;
}

export const CLIENTS = {
  'BIOS PXE': { vendorClass: 'PXEClient:Arch:00000:UNDI:002001', arch: 0 },
  'UEFI x64': { vendorClass: 'PXEClient:Arch:00007:UNDI:003016', arch: 7 },
  'UEFI x64 by the letter of RFC 4578': { vendorClass: 'PXEClient:Arch:00009:UNDI:003016', arch: 9 },
  'UEFI arm64': { vendorClass: 'PXEClient:Arch:00011:UNDI:003000', arch: 11 },
  'UEFI HTTP x64': { vendorClass: 'HTTPClient:Arch:00016:UNDI:003001', arch: 16 },
  'UEFI HTTP arm64': { vendorClass: 'HTTPClient:Arch:00019:UNDI:003001', arch: 19 },
  'iPXE on UEFI': { vendorClass: 'PXEClient:Arch:00007:UNDI:003010', arch: 7, ipxe: true },
  'iPXE on BIOS': { vendorClass: 'PXEClient:Arch:00000:UNDI:002001', arch: 0, ipxe: true },
} as const satisfies Record<string, ClientKind>;
export type ClientName = keyof typeof CLIENTS;
export const CLIENT_NAMES = Object.keys(CLIENTS) as ClientName[];

export const UUID = Buffer.from('006b8e4a0c00004000800000000000000c', 'hex');
/** What iPXE says it can do; the first bytes of what Debian's build sends. */
const IPXE_FEATURES = Buffer.from('b105011af41041180101', 'hex');
/** Options that PXE firmware asks for, the boot file's among them. */
const WANTED = Buffer.of(1, 3, 43, 54, 60, 66, 67, 97);

export type PacketChanges = Partial<Omit<DhcpPacket, 'options'>> & {
  /** Added; null takes one away. */
  readonly options?: Readonly<Record<number, Buffer | null>>;
};

/** A DISCOVER of that client, unless the changes say otherwise. */
export function clientPacket(name: ClientName, mac: string, { options: changed = {}, ...changes }: PacketChanges = {}): DhcpPacket {
  const { vendorClass, arch, ipxe }: ClientKind = CLIENTS[name];
  const options = new Map<number, Buffer>([
    [OPTION.messageType, Buffer.of(MESSAGE.discover)],
    [57, Buffer.of(5, 0xc0)],
    [OPTION.parameterList, WANTED],
    [OPTION.clientUuid, UUID],
    [OPTION.clientInterface, Buffer.of(1, 3, 16)],
    [OPTION.clientArch, Buffer.of(arch >> 8, arch & 0xff)],
    [OPTION.vendorClass, Buffer.from(vendorClass, 'latin1')],
    ...(ipxe ? [[OPTION.ipxe, IPXE_FEATURES], [OPTION.userClass, Buffer.from('iPXE')]] as [number, Buffer][] : []),
  ]);
  for (const [code, value] of Object.entries(changed)) {
    if (value) options.set(Number(code), value);
    else options.delete(Number(code));
  }
  return {
    kind: 'request', hops: 0, xid: 0x1234_5678, seconds: 4, broadcast: true, ciaddr: NO_ADDRESS, yiaddr: NO_ADDRESS, siaddr: NO_ADDRESS, giaddr: NO_ADDRESS, mac, serverName: '', file: '', ...changes, options,
  };
}

/** What a client takes of an answer: a server may put the boot file into its field or its option. */
export interface Taken {
  readonly from: string;
  readonly address: string;
  readonly nextServer: string;
  readonly file: string;
  readonly vendorClass: string;
  readonly packet: DhcpPacket;
}

const text = (bytes: Buffer | undefined): string => bytes?.toString('latin1').replace(/\0+$/, '') ?? '';

export function takenOf(packet: DhcpPacket): Taken {
  const { options, file, yiaddr, siaddr } = packet;
  return { from: options.get(OPTION.serverId)?.join('.') ?? '', address: yiaddr, nextServer: siaddr, file: file || text(options.get(OPTION.bootFile)), vendorClass: text(options.get(OPTION.vendorClass)), packet };
}

export interface RawClient {
  readonly port: number;
  send(bytes: Buffer, to: { address: string; port: number }): Promise<void>;
  /** Answers so far, in order. */
  readonly heard: readonly { readonly packet: DhcpPacket; readonly port: number; readonly address: string }[];
  /** The next answer that fits. @throws after `limitMs` */
  next(fits?: (packet: DhcpPacket) => boolean, limitMs?: number): Promise<DhcpPacket>;
  close(): Promise<void>;
}

export async function rawClient({ listen, port, from = listen }: { listen: string; port: number; from?: string }): Promise<RawClient> {
  const open = async (address: string, at: number): Promise<Socket> => {
    // A free port that is shared may be one that another sharing socket has already.
    const socket = createSocket({ type: 'udp4', reuseAddr: at !== 0 });
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ address, port: at, exclusive: true }, resolve);
    });
    socket.setBroadcast(true);
    return socket;
  };
  const hears = await open(listen, port);
  const says = from === listen ? hears : await open(from, port);
  const heard: { packet: DhcpPacket; port: number; address: string }[] = [];
  const waiting = new Set<() => void>();
  const giveUp = new Set<() => void>();
  let taken = 0;
  for (const socket of new Set([hears, says])) {
    socket.on('message', (bytes, sender) => {
      const reading = readDhcp(bytes);
      if (reading.kind !== 'packet') return;
      heard.push({ packet: reading.packet, port: sender.port, address: sender.address });
      for (const look of [...waiting]) look();
    });
  }
  return {
    port: hears.address().port,
    heard,
    send: (bytes, to) => new Promise((resolve, reject) => says.send(bytes, to.port, to.address, (error) => (error ? reject(error) : resolve()))),
    next: (fits = () => true, limitMs = 60_000) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const at = heard.findIndex(({ packet }, index) => index >= taken && fits(packet));
          if (at < 0) return;
          taken = at + 1;
          done();
          resolve(heard[at]!.packet);
        };
        const fail = (why: string) => (): void => {
          done();
          reject(new Error(why));
        };
        const timer = setTimeout(fail(`no such answer within ${limitMs} ms`), limitMs);
        const onClose = fail('the client was closed');
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(look);
          giveUp.delete(onClose);
        };
        waiting.add(look);
        giveUp.add(onClose);
        look();
      }),
    close: async () => {
      for (const stop of [...giveUp]) stop();
      await Promise.all([...new Set([hears, says])].map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
    },
  };
}

export const sent = (packet: DhcpPacket): Buffer => writeDhcp(packet);
