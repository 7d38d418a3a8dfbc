/** The operator plane's ports in memory, and the plane on a socket. */
import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { HookLedger, NodeDirectory, NodeRow, NodeWorkflows, OperatorTokens, Role, RunRow } from '../../src/contracts/operator.js';
import { createOperatorApi, type OperatorApiDeps } from '../../src/operatorapi/operator-api.js';
import { silentLogger } from '../../src/telemetry/log.js';

/** Tokens as an operator would send them. */
export const TOKENS: { readonly [role in Role]: string } = { reader: 'reader-token-1', operator: 'operator-token-1', approver: 'approver-token-1' };
const PEOPLE: { readonly [role in Role]: string } = { reader: 'rita', operator: 'otto', approver: 'ada' };

export const operatorTokens = (): OperatorTokens => ({
  tokens: (Object.keys(TOKENS) as Role[]).map((role) => ({ name: PEOPLE[role], role, sha256: createHash('sha256').update(TOKENS[role]).digest('hex') })),
});

/** Order by instant, sameness by digest, as the store does. */
export function memoryHooks(): HookLedger {
  const newest = new Map<string, { lastUpdated: string; digest: string }>();
  return {
    async judge(hint) {
      const known = newest.get(hint.deviceId);
      if (!known) return 'new';
      if (hint.lastUpdated < known.lastUpdated) return 'stale';
      return known.digest === hint.digest ? 'repeated' : 'new';
    },
    async remember({ deviceId, lastUpdated, digest }) {
      newest.set(deviceId, { lastUpdated, digest });
    },
  };
}

export const nodeRow = (change: Partial<NodeRow> = {}): NodeRow => ({
  deviceId: '7', name: 'node-7', site: 'ams1', nodeClass: 'compute', state: 'provisioning', since: '2026-11-30T10:00:00.000Z', adopted: false, proof: null,
  power: 'on', powerAt: '2026-11-30T10:00:00.000Z', bmcSeenAt: '2026-11-30T10:00:00.000Z', drift: null, openRun: 3, phase: 'acting', hold: null, ...change,
});

export const runRow = (change: Partial<RunRow> = {}): RunRow => ({
  deviceId: '7', run: 3, kind: 'provision', workflowId: 'node/7/run/3', phase: 'acting', openedAt: '2026-11-30T10:00:00.000Z', closedAt: null, end: null, failure: null,
  hold: null, bootAttempts: 1, orders: [], ...change,
});

export type AuditLine = Parameters<NodeDirectory['recordAudit']>[0];

export interface OperatorBench {
  readonly url: string;
  readonly signals: { deviceId: string; name: string; payload: unknown }[];
  readonly said: { deviceId: string; verb: string; input: unknown }[];
  readonly requested: { deviceId: string; action: string | null; by: string }[];
  readonly audit: AuditLine[];
  /** With the token of a role, or none. JSON answer, or text when it is none. */
  call(method: string, path: string, role: Role | null, body?: unknown): Promise<{ status: number; body: any; headers: Headers }>; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** Forgets what was said so far, so that the tests of a table can share a server. */
  forget(): void;
  close(): Promise<void>;
}

/** One node (7, `node-7`, run 3 open); every port may be replaced. */
export async function startOperatorBench(change: Partial<OperatorApiDeps> = {}): Promise<OperatorBench> {
  const signals: OperatorBench['signals'] = [];
  const said: OperatorBench['said'] = [];
  const requested: OperatorBench['requested'] = [];
  const audit: AuditLine[] = [];
  const server = createOperatorApi({
    logs: { read: async () => ({ lines: [], after: null }) },
    hooks: memoryHooks(),
    nodes: memoryNodes(audit),
    workflows: memoryWorkflows(signals, said),
    planner: { plan: async (deviceId, kind) => ({ begins: 'at once', plan: { deviceId, kind } as never, phases: ['planning'], destroys: [], notes: [] }) },
    netboxRequests: { request: async (deviceId, action, by) => { requested.push({ deviceId, action, by }); } },
    webhookSecret: 'capture-secret-not-real',
    tokens: async () => operatorTokens(),
    temporalUi: 'http://127.0.0.1:8233/namespaces/default',
    metrics: async () => '# HELP up\nup 1\n',
    ready: async () => [{ name: 'store', ok: true }],
    log: silentLogger(),
    now: () => new Date('2026-11-30T12:00:00Z'),
    ...change,
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  return {
    url, signals, said, requested, audit,
    async call(method, path, role, body) {
      const answer = await fetch(url + path, {
        method,
        headers: { ...(role && { authorization: `Bearer ${TOKENS[role]}` }), ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, body: answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text };
    },
    forget: () => [signals, said, requested, audit].forEach((list) => list.splice(0)),
    close: () => server.close(),
  };
}

export function memoryNodes(audit: AuditLine[] = []): NodeDirectory {
  const node = nodeRow();
  return {
    list: async (query) => [node].filter((one) => (query.state ?? one.state) === one.state && (query.site ?? one.site) === one.site && (query.class ?? one.nodeClass) === one.nodeClass),
    find: async (idOrName) => ([node.deviceId, node.name].includes(idOrName) ? node : null),
    runs: async () => [runRow()],
    run: async (deviceId, run) => (deviceId === '7' && run === 3 ? runRow() : null),
    journal: async (_deviceId, limit) => [{ at: '2026-11-30T10:00:00.000Z', run: 3, kind: 'run', text: `limit ${limit}`, by: null }],
    evidence: async () => [],
    strangers: async () => [],
    refused: async () => [],
    recordAudit: async (line) => { audit.push(line); },
    ping: async () => undefined,
  };
}

export function memoryWorkflows(signals: OperatorBench['signals'] = [], said: OperatorBench['said'] = []): NodeWorkflows {
  return {
    lifecycle: async (deviceId) => ({ deviceId, state: 'provisioning' }) as never,
    run: async (deviceId, run) => ({ deviceId, run, phase: 'acting' }) as never,
    say: async (deviceId, verb, input) => { said.push({ deviceId, verb, input }); return { accepted: true, text: `${verb} taken` }; },
    signalLifecycle: async (deviceId, name, payload) => { signals.push({ deviceId, name, payload }); },
    ping: async () => undefined,
  };
}
