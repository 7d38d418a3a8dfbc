/** What nodes say over syslog, kept for people. It steers nothing. */
import { z } from 'zod';

/** One line, as the boot plane hands it to the store. */
export interface NodeLogLine {
  readonly deviceId: string;
  /** ISO instants, UTC: the line's own word, and when it came. */
  readonly at: string;
  readonly receivedAt: string;
  /** 0 (emergency) to 7 (debug). */
  readonly severity: number;
  /** 0 (kernel) to 23 (local7). */
  readonly facility: number;
  readonly host: string;
  readonly program: string | null;
  readonly text: string;
}

export interface KeptLogLine extends NodeLogLine {
  /** Sorts as the lines came; the cursor of `after`. */
  readonly id: string;
  /** The run that was open when it came; null between runs. */
  readonly run: number | null;
}

/** The store, seen from the boot plane. */
export interface NodeLogWriter {
  /** One transaction for all. @throws store_unavailable; then none is kept */
  keep(lines: readonly NodeLogLine[]): Promise<void>;
}

export const MOST_LOG_LINES = 5000;

/** `after` and `since` say where to begin; without either, the newest `limit` lines are given. Lines come oldest first. */
export const NodeLogsQuery = z.object({
  run: z.coerce.number().int().min(1).max(1_000_000).optional(),
  after: z.string().regex(/^[0-9a-f]{26}$/, 'is no cursor').optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).max(MOST_LOG_LINES).default(200),
});
export type NodeLogsQuery = z.infer<typeof NodeLogsQuery>;

export interface NodeLogsPage {
  readonly lines: readonly KeptLogLine[];
  /** For the next `after`; what was asked with when there was nothing. */
  readonly after: string | null;
}

/** The store, seen from the operator plane. */
export interface NodeLogReader {
  read(deviceId: string, query: NodeLogsQuery): Promise<NodeLogsPage>;
}

/** Where the log of a run is read, below the operator plane. */
export const logsPath = (deviceId: string, run: number): string => `/api/v1/nodes/${deviceId}/logs?run=${run}`;
