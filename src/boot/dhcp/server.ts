/**
 * The proxy DHCP: a switch, off. It hears every DISCOVER of the network, and answers those of firmware and iPXE whose device is to boot from
 * the network now, with a boot file and no address. All it knows comes from the one gate.
 */
import type { RemoteInfo, Socket } from 'node:dgram';
import type { BootGate } from '../../contracts/boot.js';
import { MetalflowError } from '../../domain/errors.js';
import { addressText, type ListenerState } from '../../telemetry/listening.js';
import type { Logger } from '../../telemetry/log.js';
import { bootFileOf, type BootPlace } from './boot-file.js';
import { answerTo, destinationOf, readAsk, type Door } from './decide.js';
import { NO_ADDRESS, readDhcp, writeDhcp } from './packet.js';
import { probeDhcp, type ProbeResult } from './probe.js';
import { bindShared, closed } from './sockets.js';

/** `offered` and `acknowledged` are answers; every other word is why there was none. */
export type ProxyOutcome = string;

export interface ProxyWire {
  /** Hears broadcasts; the default is every address of the machine. */
  readonly listen: string;
  readonly broadcast: string;
  readonly serverPort: number;
  /** PXE 2.1: where a client asks a proxy again once it has its address. */
  readonly bootServerPort: number;
  readonly clientPort: number;
}

export const STANDARD_WIRE: ProxyWire = { listen: NO_ADDRESS, broadcast: '255.255.255.255', serverPort: 67, bootServerPort: 4011, clientPort: 68 };

export interface ProxyDhcpDeps {
  readonly gate: BootGate;
  readonly place: BootPlace;
  readonly log: Logger;
  /** Who else answers on this network; asked once, before the first answer of ours. */
  readonly probe?: () => Promise<ProbeResult>;
  /** Counts outcomes; not trusted not to throw. */
  readonly count?: (outcome: ProxyOutcome) => void;
  readonly wire?: Partial<ProxyWire>;
  /** Questions that may wait for the gate at once; more are dropped: a client asks again. */
  readonly inHand?: number;
}

export interface ProxyDhcp {
  readonly port: number;
  readonly bootServerPort: number;
  /** For the plane's readiness. */
  listener(): ListenerState;
  stats(): { readonly received: number; readonly outcomes: Readonly<Record<string, number>> };
  close(): Promise<void>;
}

const IN_HAND = 256;

/** @throws port_in_use, port_forbidden, address_not_here, proxy_dhcp_not_alone */
export async function startProxyDhcp({ gate, place, log, ...deps }: ProxyDhcpDeps): Promise<ProxyDhcp> {
  const wire = { ...STANDARD_WIRE, ...deps.wire };
  const probe = deps.probe ?? ((): Promise<ProbeResult> => probeDhcp({ address: place.address, ...wire }));
  const most = deps.inHand ?? IN_HAND;
  const sockets: Socket[] = [];
  const outcomes: Record<string, number> = {};
  const working = new Set<Promise<void>>();
  let received = 0;
  let closing = false;
  let failed: string | null = null;

  const count = (outcome: ProxyOutcome): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    try {
      deps.count?.(outcome);
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'an outcome of the proxy DHCP was not counted');
    }
  };

  async function bind(address: string, port: number): Promise<Socket> {
    const socket = await bindShared('the proxy DHCP', address, port);
    socket.on('error', (error) => {
      failed = error.message;
      log.error({ err: error }, 'a socket of the proxy DHCP failed');
    });
    sockets.push(socket);
    return socket;
  }

  function hear(socket: Socket, door: Door, replies: Socket): void {
    socket.on('message', (bytes, from) => {
      if (closing) return;
      received++;
      if (working.size >= most) return count('busy');
      const work = take(bytes, from, door, replies).catch((error: unknown) => log.error({ err: error }, 'a DHCP packet was dropped'));
      working.add(work);
      void work.then(() => working.delete(work));
    });
  }

  async function take(bytes: Buffer, from: RemoteInfo, door: Door, replies: Socket): Promise<void> {
    const reading = readDhcp(bytes);
    if (reading.kind === 'unreadable') return count('unreadable');
    const heard = readAsk(reading.packet, door);
    if (heard.kind === 'none') return count(heard.why);
    const { ask } = heard;
    const path = bootFileOf(ask.want, ask.mac, place);
    const decision = await gate.decide({ artefact: 'offer', mac: ask.mac, sender: from.address, path });
    const answer = answerTo(ask, decision, place);
    if (answer.kind === 'none') return count(answer.why);
    // Port 0 cannot be answered, and a role that closes says nothing more.
    if (closing || from.port === 0) return count('send-failed');
    const to = destinationOf(ask.packet, door, from, wire);
    await new Promise<void>((resolve) => {
      replies.send(writeDhcp(answer.packet), to.port, to.address, (error) => {
        count(error ? 'send-failed' : door === 'dhcp' ? 'offered' : 'acknowledged');
        if (error) log.warn({ mac: ask.mac, to: to.address, reason: error.message }, 'an offer of the proxy DHCP could not be sent');
        resolve();
      });
    });
  }

  const closeAll = async (): Promise<void> => {
    closing = true;
    // First what is in hand: a socket that closes under a send never says how it ended.
    await Promise.all(working);
    await Promise.all(sockets.splice(0).map(closed));
  };

  try {
    const hears = await bind(wire.listen, wire.serverPort);
    const { port } = hears.address();
    // Replies come from the address that the option server-id names, and leave by its interface; what relays send to it comes in here too.
    const replies = wire.listen === place.address ? hears : await bind(place.address, port);
    const bootServer = await bind(place.address, wire.bootServerPort);
    const found = await probe();
    if (found.kind === 'another-proxy') throw new MetalflowError('proxy_dhcp_not_alone', { address: found.address });
    if (found.addressServers.length === 0) log.warn('no DHCP server gave the probe an address: without one no node boots from the network; the proxy DHCP gives none');
    for (const { address } of found.addressServers.filter(({ namesBootFile }) => namesBootFile))
      log.warn({ server: address }, 'this DHCP server names a boot file of its own: firmware may take that one');
    for (const socket of new Set([hears, replies])) hear(socket, 'dhcp', replies);
    hear(bootServer, 'boot-server', bootServer);
    const listener = (): ListenerState => (failed === null ? { state: 'listening', address: addressText(place.address, port) } : { state: 'failed', why: failed });
    return { port, bootServerPort: bootServer.address().port, listener, stats: () => ({ received, outcomes: { ...outcomes } }), close: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
