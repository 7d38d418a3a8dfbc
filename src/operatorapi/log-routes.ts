/** What a node said over syslog: a page of it, or what comes next. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { NodeLogsQuery, type NodeLogReader } from '../contracts/node-logs.js';
import type { NodeDirectory } from '../contracts/operator.js';
import type { HttpServer } from '../telemetry/http.js';
import { ask, LIMITS_MS } from './ask.js';
import { findNode, NodeParams } from './node-lookup.js';

/** `wait`: seconds to wait for the first line when there is none. */
const LogsQuery = NodeLogsQuery.extend({ wait: z.coerce.number().min(0).max(30).default(0) });
const LOOK_EVERY_MS = 250;

export interface LogRouteDeps {
  readonly nodes: NodeDirectory;
  readonly logs: NodeLogReader;
}

export function addLogRoutes(server: HttpServer, { nodes, logs }: LogRouteDeps): void {
  const config = { role: 'reader', summary: 'What a node said over syslog, oldest first; `after` goes on, `wait` waits' } as const;
  server.get('/api/v1/nodes/:id/logs', { config, schema: { params: NodeParams, querystring: LogsQuery } }, async ({ params, query, raw }) => {
    const { deviceId } = await findNode(nodes, params.id);
    const { wait, ...asked } = query;
    const until = Date.now() + wait * 1000;
    for (;;) {
      const page = await ask('store_unavailable', LIMITS_MS.read, () => logs.read(deviceId, asked));
      // Who hung up waits for nothing.
      if (page.lines.length > 0 || Date.now() >= until || raw.socket.destroyed) return page;
      await sleep(LOOK_EVERY_MS);
    }
  });
}
