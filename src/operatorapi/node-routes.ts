/** Reads about nodes and their runs. */
import { z } from 'zod';
import { NodesQuery, type NodeDirectory, type NodeWorkflows, type RunPlanner } from '../contracts/operator.js';
import { DeviceId } from '../contracts/primitives.js';
import { MetalflowError } from '../domain/errors.js';
import { REQUESTS } from '../domain/runs.js';
import type { HttpServer } from '../telemetry/http.js';
import { ask, LIMITS_MS } from './ask.js';
import { readLive } from './live.js';
import type { Links } from './links.js';
import { findNode, NodeParams } from './node-lookup.js';

/**
 * What the workflows say now is asked for, not given: each such read is a Temporal query, and with the present SDK a query that meets a
 * signal can leave a workflow that no longer replays (docs/decisions/queries-are-asked-for.md). Who polls, reads the store.
 */
const LiveQuery = z.object({ live: z.enum(['true', 'false']).default('false') });
const PlanQuery = z.object({ kind: z.enum(REQUESTS) });
const JournalQuery = z.object({ limit: z.coerce.number().int().min(1).max(1000).default(100) });
const RunParams = z.object({ device: DeviceId, run: z.coerce.number().int().min(1).max(1_000_000) });

export interface NodeRouteDeps {
  readonly nodes: NodeDirectory;
  readonly workflows: NodeWorkflows;
  readonly planner: RunPlanner;
  readonly links: Links;
}

export function addNodeRoutes(server: HttpServer, { nodes, workflows, planner, links }: NodeRouteDeps): void {
  const read = <T>(call: () => Promise<T>): Promise<T> => ask('store_unavailable', LIMITS_MS.read, call);
  const config = (summary: string) => ({ role: 'reader', summary }) as const;

  const ofAll = config('Every node, or those of a state, site or class; and, of all, the devices that metalflow cannot begin with');
  server.get('/api/v1/nodes', { config: ofAll, schema: { querystring: NodesQuery } }, async ({ query }) => ({
    nodes: await read(() => nodes.list(query)),
    // Of what is no node nobody knows a state, site or class.
    ...(Object.keys(query).length === 0 && { refused: await read(() => nodes.refused()) }),
  }));

  const ofOne = config('One node: what the store knows, what its workflows say now, its runs');
  server.get('/api/v1/nodes/:id', { config: ofOne, schema: { params: NodeParams, querystring: LiveQuery } }, async ({ params, query }) => {
    const node = await findNode(nodes, params.id);
    const [live, runs] = await Promise.all([query.live === 'true' ? readLive(workflows, node.deviceId, node.openRun) : null, read(() => nodes.runs(node.deviceId))]);
    return { node, live, runs, links: { lifecycle: links.lifecycle(node.deviceId), run: node.openRun === null ? null : links.run(node.deviceId, node.openRun) } };
  });

  server.get('/api/v1/nodes/:id/plan', { config: config('What a run would do; does nothing'), schema: { params: NodeParams, querystring: PlanQuery } }, async ({ params, query }) => {
    const { deviceId } = await findNode(nodes, params.id);
    return ask('internal', LIMITS_MS.verb, () => planner.plan(deviceId, query.kind));
  });

  server.get('/api/v1/nodes/:id/evidence', { config: config('Attestations of a node, accepted and refused'), schema: { params: NodeParams } }, async ({ params }) => {
    const { deviceId } = await findNode(nodes, params.id);
    return { evidence: await read(() => nodes.evidence(deviceId)) };
  });

  server.get('/api/v1/strangers', { config: config('Machines that attested under a boot MAC which no device declares, newest first') }, async () => {
    return { strangers: await read(() => nodes.strangers()) };
  });

  server.get('/api/v1/nodes/:id/journal', { config: config('What happened to a node, newest first'), schema: { params: NodeParams, querystring: JournalQuery } }, async ({ params, query }) => {
    const { deviceId } = await findNode(nodes, params.id);
    return { journal: await read(() => nodes.journal(deviceId, query.limit)) };
  });

  server.get('/api/v1/runs/:device/:run', { config: config('One run'), schema: { params: RunParams, querystring: LiveQuery } }, async ({ params: { device, run }, query }) => {
    const row = await read(() => nodes.run(device, run));
    if (row === null) throw new MetalflowError('run_not_found', { run: `${device}/${run}` });
    // A closed workflow may be gone from Temporal; the row holds how it ended.
    const live = query.live === 'true' && row.closedAt === null ? await readLive(workflows, device, run) : null;
    return { run: row, live, links: { run: links.run(device, run) } };
  });
}
