/** The syslog receiver: UDP in, parsed lines out to a sink. What a node says is kept for people; it steers nothing. */
import type { RemoteInfo } from 'node:dgram';
import { listenRefusal, type ListenerState } from '../../telemetry/listening.js';
import type { Logger } from '../../telemetry/log.js';
import { plainAddress } from '../sender.js';
import { listenUdp } from '../udp.js';
import { parseSyslog, type SyslogLine } from './parse.js';

export interface SyslogLimits {
  /** Lines the sink may have in hand; more are dropped. */
  readonly inHand: number;
  /** Lines a second of one sender; more are dropped. */
  readonly perSenderSecond: number;
  /** Senders told apart within a second; more are dropped. */
  readonly senders: number;
}

export const DEFAULT_SYSLOG_LIMITS: SyslogLimits = { inHand: 1000, perSenderSecond: 200, senders: 4096 };

export interface SyslogReceiver {
  readonly port: number;
  /** For the plane's readiness. */
  listener(): ListenerState;
  close(): Promise<void>;
  stats(): { readonly received: number; readonly dropped: number; readonly failed: number };
}

export interface SyslogReceiverDeps {
  readonly address: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** May throw or reject: the line is then lost, and counted. */
  readonly sink: (line: SyslogLine) => void | Promise<void>;
  readonly now: () => Date;
  readonly log: Logger;
  readonly limits?: Partial<SyslogLimits>;
  /** How often a lost socket is opened again, ms. */
  readonly lookAgainMs?: number;
}

/** @throws port_in_use, port_forbidden, address_not_here */
export async function startSyslogReceiver({ address, port, sink, now, log, ...deps }: SyslogReceiverDeps): Promise<SyslogReceiver> {
  const limits = { ...DEFAULT_SYSLOG_LIMITS, ...deps.limits };
  let received = 0;
  let dropped = 0;
  let failed = 0;
  let inHand = 0;
  let second = 0;
  let bySender = new Map<string, number>();

  /** Whether this sender has said enough for this second. */
  function tooMuch(sender: string, at: Date): boolean {
    const current = Math.floor(at.getTime() / 1000);
    if (current !== second) {
      second = current;
      bySender = new Map();
    }
    const said = bySender.get(sender) ?? 0;
    if (said >= limits.perSenderSecond || (said === 0 && bySender.size >= limits.senders)) return true;
    bySender.set(sender, said + 1);
    return false;
  }

  async function deliver(line: SyslogLine): Promise<void> {
    inHand++;
    try {
      await sink(line);
    } catch (error) {
      failed++;
      log.debug({ reason: (error as Error).message }, 'a syslog line was lost');
    } finally {
      inHand--;
    }
  }

  function take(bytes: Buffer, from: RemoteInfo): void {
    const at = now();
    received++;
    if (inHand >= limits.inHand || tooMuch(plainAddress(from.address), at)) {
      dropped++;
      return;
    }
    const line = parseSyslog(bytes, from.address, at);
    if (line) void deliver(line);
  }

  const listener = await listenUdp({ address, port, received: take, log, lookAgainMs: deps.lookAgainMs }).catch(async (error: unknown) => {
    throw await listenRefusal({ what: 'syslog', transport: 'udp', address, port }, error);
  });

  return {
    port: listener.port,
    listener: () => listener.state(),
    close: () => listener.close(),
    stats: () => ({ received, dropped, failed }),
  };
}
