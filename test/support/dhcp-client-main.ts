/** The raw client as a program of its own, for a station of a network bench: questions in as one JSON argument, what was offered out as JSON. */
import { pathToFileURL } from 'node:url';
import { MESSAGE, messageTypeOf, OPTION } from '../../src/boot/dhcp/options.js';
import { addressBytes, NO_ADDRESS } from '../../src/boot/dhcp/packet.js';
import { clientPacket, rawClient, sent, takenOf, type ClientName } from './dhcp-client.js';

export interface Questions {
  /** The station's own address, out of whose interface the broadcasts go. */
  readonly from: string;
  /** `offers`: how many to wait for, where it is not as for the others. */
  readonly asks: readonly { readonly name: ClientName; readonly mac: string; readonly offers?: number }[];
  readonly offers: number;
  /** Then asks that proxy on port 4011, with the address it was offered. */
  readonly bootServer?: string;
}
export interface Offered {
  readonly from: string;
  readonly address: string;
  readonly nextServer: string;
  readonly file: string;
  readonly vendorClass: string;
}
export interface Heard {
  readonly name: ClientName;
  readonly mac: string;
  readonly offers: readonly Offered[];
  readonly acknowledged: Offered | null;
}

const TRIES = 10;
const TRY_MS = 2000;

async function ask({ from, asks, offers: usual, bootServer }: Questions): Promise<Heard[]> {
  const client = await rawClient({ listen: NO_ADDRESS, from, port: 68 });
  const of = (xid: number, type: number): Offered[] => {
    const servers = client.heard.filter(({ packet }) => packet.xid === xid && messageTypeOf(packet.options) === type).map(({ packet }) => takenOf(packet));
    return [...new Map(servers.map(({ packet: _, ...taken }) => [taken.from, taken])).values()].sort((a, b) => a.from.localeCompare(b.from));
  };
  const heard: { name: ClientName; mac: string; xid: number }[] = [];
  for (const [index, { name, mac, offers = usual }] of asks.entries()) {
    const xid = 0x4d46_0000 + index;
    const ours = (type: number) => (packet: { xid: number; options: ReadonlyMap<number, Buffer> }): boolean => packet.xid === xid && messageTypeOf(packet.options) === type;
    for (let tries = 0; tries < TRIES && of(xid, MESSAGE.offer).length < offers; tries++) {
      await client.send(sent(clientPacket(name, mac, { xid })), { address: '255.255.255.255', port: 67 });
      while (of(xid, MESSAGE.offer).length < offers) if (!(await client.next(ours(MESSAGE.offer), TRY_MS).catch(() => null))) break;
    }
    if (bootServer) {
      const given = of(xid, MESSAGE.offer).find(({ address }) => address !== NO_ADDRESS)?.address ?? NO_ADDRESS;
      // The station speaks from its own address: a client has the one it was given by then, which the packet says.
      const request = sent(clientPacket(name, mac, { xid, ciaddr: given, broadcast: false, options: { [OPTION.messageType]: Buffer.of(MESSAGE.request), [OPTION.serverId]: addressBytes(bootServer) } }));
      for (let tries = 0; tries < TRIES && of(xid, MESSAGE.ack).length === 0; tries++) {
        await client.send(request, { address: bootServer, port: 4011 });
        await client.next(ours(MESSAGE.ack), TRY_MS).catch(() => null);
      }
    }
    heard.push({ name, mac, xid });
  }
  await client.close();
  return heard.map(({ name, mac, xid }) => ({ name, mac, offers: of(xid, MESSAGE.offer), acknowledged: of(xid, MESSAGE.ack)[0] ?? null }));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) process.stdout.write(`${JSON.stringify(await ask(JSON.parse(process.argv[2] ?? '{}') as Questions))}\n`);
