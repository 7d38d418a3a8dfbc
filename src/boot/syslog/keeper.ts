/**
 * From the receiver to the store: each line is matched to its node by the sender's address, and written with its
 * neighbours. What the store cannot take is dropped and counted; the process never grows for it.
 */
import type { BootDirectory } from '../../contracts/boot.js';
import type { NodeLogLine, NodeLogWriter } from '../../contracts/node-logs.js';
import type { Logger } from '../../telemetry/log.js';
import { within } from '../patience.js';
import type { SyslogLine } from './parse.js';

export interface KeeperLimits {
  /** Milliseconds a line waits for its neighbours. */
  readonly gatherMs: number;
  /** Lines of one write. */
  readonly batch: number;
  /** Lines that may wait; more are dropped. */
  readonly waiting: number;
  /** Milliseconds for which a sender's node, or that it has none, is believed. */
  readonly senderMs: number;
  readonly senders: number;
  /** Milliseconds the store may take. */
  readonly storeMs: number;
}

export const DEFAULT_KEEPER_LIMITS: KeeperLimits = { gatherMs: 250, batch: 500, waiting: 5000, senderMs: 10_000, senders: 4096, storeMs: 5000 };

/** `of-nobody`: from an address that is no node's, logged and not kept. `dropped`: too many waited. `lost`: logged, and not taken by the store. */
export type LineEnd = 'kept' | 'of-nobody' | 'dropped' | 'lost';

export interface LogKeeperDeps {
  readonly directory: Pick<BootDirectory, 'byAddress'>;
  readonly logs: NodeLogWriter;
  readonly log: Logger;
  readonly now: () => Date;
  readonly count?: (end: LineEnd, lines: number) => void;
  readonly limits?: Partial<KeeperLimits>;
}

export interface LogKeeper {
  /** Takes a line; never throws, never waits. */
  take(line: SyslogLine): void;
  /** Writes what waits. */
  close(): Promise<void>;
}

export function createLogKeeper({ directory, logs, log, now, count = () => undefined, ...deps }: LogKeeperDeps): LogKeeper {
  const limits = { ...DEFAULT_KEEPER_LIMITS, ...deps.limits };
  const waiting: { readonly line: SyslogLine; readonly receivedAt: string }[] = [];
  const senders = new Map<string, { readonly deviceId: string | null; readonly until: number }>();
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> | null = null;
  let isStoreAway = false;

  async function nodeOf(sender: string): Promise<string | null> {
    const at = now().getTime();
    const known = senders.get(sender);
    if (known && known.until > at) return known.deviceId;
    const deviceId = (await within(limits.storeMs, () => directory.byAddress(sender)))?.deviceId ?? null;
    if (senders.size >= limits.senders) senders.clear();
    senders.set(sender, { deviceId, until: at + limits.senderMs });
    return deviceId;
  }

  const logged = ({ host, app, sender, severity, facility, at, text }: SyslogLine, deviceId: string | null): void =>
    log.info({ HOOKOS_HOST: host, HOOKOS_PROGRAM: app, device: deviceId, sender, severity, facility, at, text }, 'from a node');

  async function write(batch: typeof waiting): Promise<void> {
    let told = 0;
    try {
      const lines: NodeLogLine[] = [];
      for (const { line, receivedAt } of batch) {
        const deviceId = await nodeOf(line.sender);
        logged(line, deviceId);
        told++;
        if (deviceId !== null) lines.push({ deviceId, at: line.at, receivedAt, severity: line.severity, facility: line.facility, host: line.host, program: line.app, text: line.text });
      }
      if (lines.length > 0) await within(limits.storeMs, () => logs.keep(lines));
      count('kept', lines.length);
      count('of-nobody', batch.length - lines.length);
      if (isStoreAway) log.info('the lines of nodes are kept again');
      isStoreAway = false;
    } catch (error) {
      count('lost', batch.length);
      for (const { line } of batch.slice(told)) logged(line, null);
      // Once an outage.
      if (!isStoreAway) log.warn({ lines: batch.length, reason: (error as Error).message }, 'lines of nodes are not kept: the store does not take them');
      isStoreAway = true;
    }
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) await write(waiting.splice(0, limits.batch));
    writing = null;
  }

  function flush(): void {
    timer = null;
    if (writing === null && waiting.length > 0) writing = writeAll();
  }

  return {
    take(line) {
      if (waiting.length >= limits.waiting) return count('dropped', 1);
      waiting.push({ line, receivedAt: now().toISOString() });
      timer ??= setTimeout(flush, limits.gatherMs);
    },
    async close() {
      if (timer) clearTimeout(timer);
      flush();
      await writing;
    },
  };
}
