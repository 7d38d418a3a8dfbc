/**
 * What the proxy answers (PXE 2.1 §2.2.3, RFC 4578, RFC 2131 §4.1): a packet and the gate's decision in, a reply or the reason for
 * silence out. Pure. The proxy gives no address: another server does, and the client puts the two offers together.
 */
import type { BootDecision } from '../../contracts/boot.js';
import { clientArch } from '../../domain/client-arch.js';
import { bootFileOf, type BootPlace, type BootWant } from './boot-file.js';
import { clientArchOf, isIpxe, MESSAGE, messageTypeOf, OPTION, PXE_CLIENT, TAKE_OUR_BOOT_FILE, vendorClassOf, type VendorClass } from './options.js';
import { addressBytes, NO_ADDRESS, type DhcpPacket } from './packet.js';

/** Where it came in: among the address servers (67), or where PXE asks a proxy again (4011). */
export type Door = 'dhcp' | 'boot-server';

/** Why nothing is sent, besides what the gate says; few and fixed, so that they can label a metric. */
export const SILENT_WHYS = ['unreadable', 'is-a-reply', 'other-message', 'not-netboot', 'no-unicast-mac', 'uuid-malformed', 'unknown-architecture', 'too-far', 'busy', 'send-failed'] as const;
export type SilentWhy = (typeof SILENT_WHYS)[number];

/** A client that asks for a boot file. */
export interface Ask {
  readonly mac: string;
  readonly want: BootWant;
  readonly vendorClass: VendorClass;
  readonly packet: DhcpPacket;
  readonly door: Door;
}

export type Heard = { readonly kind: 'ask'; readonly ask: Ask } | { readonly kind: 'none'; readonly why: SilentWhy };
export type Answer = { readonly kind: 'reply'; readonly packet: DhcpPacket } | { readonly kind: 'none'; readonly why: string };

/** RFC 1542 §4.1.1: a packet that went through this many relays goes round in circles. */
const MOST_HOPS = 16;
/** RFC 4578 §2.3: a type octet and sixteen of UUID; some firmware sends the option empty. */
const UUID_LENGTHS: readonly number[] = [0, 17];

const none = (why: SilentWhy): { readonly kind: 'none'; readonly why: SilentWhy } => ({ kind: 'none', why });

/** Who asks, and for what. A REQUEST on port 67 is for the address server, and none of ours. */
export function readAsk(packet: DhcpPacket, door: Door): Heard {
  const { options, mac } = packet;
  if (packet.kind !== 'request') return none('is-a-reply');
  if (messageTypeOf(options) !== (door === 'dhcp' ? MESSAGE.discover : MESSAGE.request)) return none('other-message');
  const vendorClass = vendorClassOf(options);
  if (vendorClass === null) return none('not-netboot');
  if (packet.hops > MOST_HOPS) return none('too-far');
  if (mac === '00:00:00:00:00:00' || (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1) return none('no-unicast-mac');
  const uuid = options.get(OPTION.clientUuid);
  if (uuid && !UUID_LENGTHS.includes(uuid.length)) return none('uuid-malformed');
  const ask = (want: BootWant): Heard => ({ kind: 'ask', ask: { mac, want, vendorClass, packet, door } });
  if (isIpxe(options)) return ask({ by: 'script' });
  const code = clientArchOf(options);
  const arch = code === null ? null : clientArch(code);
  // Firmware that boots by HTTP and says an architecture of PXE, or the other way round, would be given what it cannot take.
  if (!arch || arch.httpBoot !== (vendorClass !== PXE_CLIENT)) return none('unknown-architecture');
  return ask({ by: arch.httpBoot ? 'http' : 'tftp', program: arch.program });
}

/** No offer at all for what boots its disk: a firmware that is offered nothing goes on to its next boot entry by itself. */
export function answerTo(ask: Ask, decision: BootDecision, place: BootPlace): Answer {
  if (decision.kind === 'boot-disk' || decision.kind === 'silent') return { kind: 'none', why: decision.why };
  const { packet, door, vendorClass } = ask;
  const file = bootFileOf(ask.want, ask.mac, place);
  const options = new Map<number, Buffer>([
    [OPTION.messageType, Buffer.of(door === 'dhcp' ? MESSAGE.offer : MESSAGE.ack)],
    [OPTION.serverId, addressBytes(place.address)],
    [OPTION.vendorClass, Buffer.from(vendorClass, 'latin1')],
  ]);
  if (vendorClass === PXE_CLIENT) options.set(OPTION.vendorSpecific, TAKE_OUR_BOOT_FILE);
  options.set(OPTION.tftpServer, Buffer.from(place.address, 'latin1'));
  options.set(OPTION.bootFile, Buffer.from(file, 'latin1'));
  // What a client and a relay want to see again; the relay's last (RFC 3046 §2.2).
  for (const code of [OPTION.clientUuid, OPTION.relayAgent]) {
    const value = packet.options.get(code);
    if (value) options.set(code, value);
  }
  return {
    kind: 'reply',
    packet: {
      kind: 'reply', hops: 0, xid: packet.xid, seconds: 0, broadcast: packet.broadcast,
      ciaddr: door === 'dhcp' ? NO_ADDRESS : packet.ciaddr, yiaddr: NO_ADDRESS, siaddr: place.address, giaddr: packet.giaddr,
      mac: packet.mac, serverName: place.address, file, options,
    },
  };
}

export interface Destination {
  readonly address: string;
  readonly port: number;
}

/**
 * Where the reply goes. To the relay that brought the question; to a client that has an address already; else to all, since without an
 * address of ours for it there is nothing to send to. On port 4011 the client has an address and waits where it asked from.
 */
export function destinationOf(packet: DhcpPacket, door: Door, sender: Destination, wire: { readonly serverPort: number; readonly clientPort: number; readonly broadcast: string }): Destination {
  if (packet.giaddr !== NO_ADDRESS) return { address: packet.giaddr, port: wire.serverPort };
  if (door === 'boot-server') return sender;
  if (packet.ciaddr !== NO_ADDRESS && !packet.broadcast) return { address: packet.ciaddr, port: wire.clientPort };
  return { address: wire.broadcast, port: wire.clientPort };
}
