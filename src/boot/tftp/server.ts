/** The read-only TFTP server (RFC 1350, 2347, 2348, 2349, 7440). It asks the gate before every answer, whatever was asked. */
import type { RemoteInfo } from 'node:dgram';
import type { BootGate } from '../../contracts/boot.js';
import { ERRORS } from '../../domain/errors.js';
import { listenRefusal, type ListenerState } from '../../telemetry/listening.js';
import type { Logger } from '../../telemetry/log.js';
import type { BootFile, BootFiles } from '../files.js';
import { realTimers, type Timers } from '../patience.js';
import { plainAddress } from '../sender.js';
import { listenUdp, type UdpDoor } from '../udp.js';
import { DEFAULT_TFTP_LIMITS, type TftpLimits } from './limits.js';
import { readName } from './names.js';
import { toNetascii } from './netascii.js';
import { negotiate } from './options.js';
import { errorPacket, readPacket, TFTP_ERROR, type TftpErrorCode, type TftpPacket } from './packet.js';
import { createPlaces, type Place } from './places.js';
import { createSessions } from './sessions.js';
import { createTransfer, type TransferEnd, type TransferOutcome } from './transfer.js';

/** What became of a request; the names of the counter's label. */
export type TftpOutcome = TransferOutcome | 'refused' | 'unanswered' | 'turned-away' | 'duplicate';

export interface TftpStats {
  readonly active: number;
  /** Sockets of transfers; a few transfers share one. */
  readonly sockets: number;
  /** Datagrams that were no request. */
  readonly ignored: number;
  readonly outcomes: Readonly<Partial<Record<TftpOutcome, number>>>;
}

export interface TftpServer {
  /** The port it was given. */
  readonly port: number;
  /** Ends every transfer and frees every socket. */
  close(): Promise<void>;
  stats(): TftpStats;
  /** For the plane's readiness. */
  listener(): ListenerState;
}

export interface TftpServerDeps {
  readonly gate: BootGate;
  readonly files: BootFiles;
  /** One address of this host, or every one (`0.0.0.0`, `::`): each is answered from where it was asked. */
  readonly address: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly log: Logger;
  readonly hostAddresses?: (address: string) => string[];
  readonly limits?: Partial<TftpLimits>;
  readonly timers?: Timers;
  readonly count?: (outcome: TftpOutcome) => void;
}

type Request = Extract<TftpPacket, { kind: 'rrq' | 'wrq' }>;

/** @throws port_in_use, port_forbidden, address_not_here */
export async function startTftpServer(deps: TftpServerDeps): Promise<TftpServer> {
  const { gate, files, address, log, timers = realTimers } = deps;
  const limits = { ...DEFAULT_TFTP_LIMITS, ...deps.limits };
  const places = createPlaces(limits, (place) => place.transfer?.stop('crowded-out'));
  const sessions = createSessions();
  const working = new Set<Promise<void>>();
  const outcomes: Partial<Record<TftpOutcome, number>> = {};
  let ignored = 0;
  let closing = false;

  const count = (outcome: TftpOutcome): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    try {
      deps.count?.(outcome);
    } catch (error) {
      // It is called from timers, where a throw would end the process.
      log.debug({ reason: (error as Error).message }, 'a TFTP outcome was not counted');
    }
  };

  const listener = await listenUdp({ address, port: deps.port, received: takeDatagram, log, hostAddresses: deps.hostAddresses }).catch(async (error: unknown) => {
    throw await listenRefusal({ what: 'TFTP', transport: 'udp', address, port: deps.port }, error);
  });

  function takeDatagram(bytes: Buffer, from: RemoteInfo, door: UdpDoor): void {
    const packet = readPacket(bytes);
    // Nothing but a request has a place here, and port 0 cannot be answered.
    if ((packet.kind !== 'rrq' && packet.kind !== 'wrq') || from.port === 0 || closing) {
      ignored++;
      return;
    }
    const earlier = places.of(from);
    if (earlier) {
      // Sent twice by the client or the network: the answer is under way, and comes again by itself when it is lost. A client
      // whose transfer stalls, or that asks for something else, has begun anew (PXE firmware always uses the same port).
      if (!earlier.transfer || (earlier.request.equals(bytes) && !earlier.transfer.stalled())) return count('duplicate');
      earlier.transfer.stop('superseded');
    }
    // Silence, not an ERROR: the client asks again, and an ERROR would end its boot.
    const place = places.take(from, bytes);
    if (!place) return count('turned-away');
    const work = answer(packet, place, door).catch((error: unknown) => {
      log.error({ err: error }, 'a TFTP request failed');
      places.free(place);
    });
    working.add(work);
    void work.then(() => working.delete(work));
  }

  async function answer(request: Request, place: Place, door: UdpDoor): Promise<void> {
    const name = readName(request.file);
    const sender = plainAddress(place.client.address);
    const named = name.kind === 'name' ? name : { path: request.file.slice(0, 200), mac: null };
    const about = { name: named.path, mac: named.mac, sender };
    const decision = await gate.decide({ artefact: 'binary', mac: named.mac, sender, path: named.path });
    const refuse = (code: TftpErrorCode, text: string): void => {
      places.free(place);
      if (closing) return;
      count('refused');
      log.debug({ ...about, refusal: text }, 'TFTP request refused');
      door.send(errorPacket(code, text), place.client);
    };
    if (decision.kind === 'silent') {
      places.free(place);
      return count('unanswered');
    }
    if (decision.kind === 'boot-disk') return refuse(TFTP_ERROR.accessViolation, ERRORS.netboot_not_allowed.text);
    if (request.kind === 'wrq') return refuse(TFTP_ERROR.accessViolation, 'this server is read-only');
    if (name.kind === 'refused') return refuse(name.why === 'empty' ? TFTP_ERROR.notFound : TFTP_ERROR.accessViolation, `file name refused: ${name.why}`);
    if (request.mode !== 'octet' && request.mode !== 'netascii') return refuse(TFTP_ERROR.illegalOperation, 'mode must be octet or netascii');
    const file = await files.open(name.path);
    if (!file) return refuse(TFTP_ERROR.notFound, 'file not found');
    const sendable = request.mode === 'octet' ? file : await translated(file, limits.netasciiBytes);
    if (!sendable) return refuse(TFTP_ERROR.illegalOperation, 'too large for netascii; ask in octet');
    await begin(request, place, sendable, about, door);
  }

  async function begin(request: Request, place: Place, file: BootFile, about: object, door: UdpDoor): Promise<void> {
    const started = Date.now();
    const terms = negotiate(request.options, file.size, limits);
    const end = ({ outcome, blocksAcknowledged, resends }: TransferEnd): void => {
      places.free(place);
      session?.close();
      void file.close().catch(() => {});
      count(outcome);
      log.info({ ...about, outcome, bytes: file.size, blockSize: terms.blockSize, windowSize: terms.windowSize, blocksAcknowledged, resends, ms: Date.now() - started }, 'TFTP transfer ended');
    };
    const session = await sessions.open({
      address: door.address,
      client: place.client,
      received: (packet) => place.transfer?.receive(packet),
      broken: () => place.transfer?.stop('stopped'),
    }).catch((error: Error) => {
      log.error({ ...about, reason: error.message }, 'no socket for a TFTP transfer');
      return null;
    });
    if (!session || closing) return end({ outcome: 'stopped', blocksAcknowledged: 0, resends: 0 });
    place.transfer = createTransfer({ file, terms, limits, timers, send: session.send, ended: end });
    place.transfer.start();
  }

  return {
    port: listener.port,
    listener: () => listener.state(),
    async close() {
      closing = true;
      for (const place of places.all()) place.transfer?.stop('stopped');
      await listener.close();
      await Promise.all(working);
    },
    stats: () => ({ active: places.size, sockets: sessions.sockets(), ignored, outcomes: { ...outcomes } }),
  };
}

/** The file as netascii, or null when it is too large to be translated as a whole. */
async function translated(file: BootFile, most: number): Promise<BootFile | null> {
  const bytes = file.size <= most ? toNetascii(await file.read(0, file.size)) : null;
  await file.close();
  return bytes && { ...file, size: bytes.length, bytes, read: async (offset, length) => bytes.subarray(offset, offset + length), close: async () => {} };
}
