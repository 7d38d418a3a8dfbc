/** The agent plane on a real socket over the fake desk, with a node that can attest. */
import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { Writable } from 'node:stream';
import type { AttestationReport, HelloResponse, ReportResponse } from '../../src/contracts/agent-api.js';
import type { SeedRenderer } from '../../src/contracts/agent-desk.js';
import { createAgentApi, type AgentApiDeps } from '../../src/agentapi/agent-api.js';
import { verifyReport } from '../../src/attestation/report.js';
import { createLogger } from '../../src/telemetry/log.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import { createFakeDesk, type FakeDesk } from './agent-desk.js';
import { createNodeKey, reportBytes, type NodeKey } from './node-key.js';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly raw?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly localAddress?: string;
  readonly signal?: AbortSignal;
}

/** One request over a connection of its own. Rejects only when the server answers nothing. */
export function send(port: number, path: string, { method, body, raw = body === undefined ? undefined : JSON.stringify(body), token, headers = {}, localAddress, signal }: Sent = {}): Promise<Reply> {
  const options: RequestOptions = {
    host: '127.0.0.1', port, path, agent: false,
    method: method ?? (raw === undefined ? 'GET' : 'POST'),
    headers: { ...(raw !== undefined && { 'content-type': 'application/json' }), ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
    ...(localAddress && { localAddress }),
    ...(signal && { signal }),
  };
  return new Promise((resolve, reject) => {
    let answered = false;
    const request = httpRequest(options, (response) => {
      answered = true;
      const chunks: Buffer[] = [];
      const finish = (): void => {
        const text = Buffer.concat(chunks).toString('utf8');
        const isJson = text !== '' && (response.headers['content-type']?.includes('json') ?? false);
        resolve({ status: response.statusCode!, headers: response.headers, text, json: isJson ? (JSON.parse(text) as Record<string, unknown>) : {} });
      };
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', finish);
      response.on('error', reject);
    });
    // A server that refuses a large body early closes while we still write: its answer is what counts.
    request.on('error', (error) => {
      if (!answered) reject(error);
    });
    request.end(raw);
  });
}

export interface TestNode {
  readonly deviceId: string;
  readonly systemUuid: string;
  readonly bootMac: string;
  readonly key: NodeKey;
}

export const testNode = (number: number): TestNode => ({
  deviceId: String(number),
  systemUuid: `4c4c4544-0042-3510-8052-${String(number).padStart(12, '0')}`,
  bootMac: `02:01:48:aa:bb:${number.toString(16).padStart(2, '0')}`,
  key: createNodeKey(),
});

export const fakeRenderer: SeedRenderer = {
  document: async (subject) => ({ contentType: 'application/json; charset=utf-8', body: JSON.stringify({ node: subject.nodeName, run: subject.run }) }),
  files: async (subject, place, baseUrl) => [{ path: `${place}.txt`, content: `${subject.instanceId} ${baseUrl}`, mode: 0o600 }],
};

export interface AgentPlane {
  readonly server: HttpServer;
  readonly port: number;
  readonly desk: FakeDesk;
  /** Everything logged so far, at the finest level. */
  logged(): string;
  send(path: string, sent?: Sent): Promise<Reply>;
  hello(node: TestNode): Promise<HelloResponse>;
  /** Says hello and reports; `says` spoils the report. */
  attest(node: TestNode, says?: Partial<AttestationReport>): Promise<Reply>;
  /** The same for a node that must be accepted. */
  admit(node: TestNode): Promise<ReportResponse>;
}

const opened: HttpServer[] = [];

export async function openAgentPlane(options: Partial<AgentApiDeps> & { now?: () => Date } = {}): Promise<AgentPlane> {
  const desk = createFakeDesk({ now: options.now });
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString('utf8');
      done();
    },
  });
  const server = createAgentApi({
    attestation: desk.attestation, orders: desk.orders, seeds: desk.seeds, renderer: fakeRenderer, verify: verifyReport, baseUrl: 'http://10.0.0.1:42114',
    simulation: false, log: createLogger({ level: 'trace', role: 'test', destination }), limits: { attestations: 1000, failures: 1000 }, ...options,
  });
  opened.push(server);
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as { port: number };

  const hello = async ({ systemUuid, bootMac, key }: TestNode): Promise<HelloResponse> => {
    const reply = await send(port, '/v1/attest/hello', { body: { systemUuid, bootMac, akPublic: key.akPublic } });
    if (reply.status !== 200) throw new Error(`hello: ${reply.status} ${reply.text}`);
    return reply.json as HelloResponse;
  };
  const attest: AgentPlane['attest'] = async (node, says = {}) => {
    const { challengeId, nonce } = await hello(node);
    const bytes = reportBytes({ version: 1, nonce, systemUuid: node.systemUuid, bootMac: node.bootMac, lldpFrame: null, disks: [], agent: { name: 'test', version: '1' }, ...says });
    return send(port, '/v1/attest/report', { body: { challengeId, report: bytes.toString('base64'), signature: node.key.sign(bytes).toString('base64') } });
  };
  return {
    server, port, desk, hello, attest,
    logged: () => text,
    send: (path, sent) => send(port, path, sent),
    admit: async (node) => {
      const reply = await attest(node);
      if (reply.status !== 200) throw new Error(`attest: ${reply.status} ${reply.text}`);
      return reply.json as ReportResponse;
    },
  };
}

/** For afterEach. */
export async function closeAgentPlanes(): Promise<void> {
  await Promise.all(opened.splice(0).map((server) => server.close()));
}

/** A declared node whose run waits for it. */
export function declareWithRun(desk: FakeDesk, node: TestNode, run = 3): string {
  desk.declare({ deviceId: node.deviceId, mac: node.bootMac, systemUuid: node.systemUuid });
  return desk.openAttempt(node.deviceId, run);
}
