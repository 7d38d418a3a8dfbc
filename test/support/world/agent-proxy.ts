/** Stands between nodes and the agent plane, and remembers with which token each order was taken: for reports that come late, or twice. */
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { reservePort } from '../ports.js';

export interface AgentProxy {
  /** Settings of a house whose nodes speak through the proxy. */
  readonly env: Readonly<Record<string, string>>;
  /** The token with which the order was taken. @throws when nobody took it */
  tokenOf(orderId: string): string;
  /** The newest token and install code that the node with this MAC got for an attestation. @throws when it got none */
  secretsOf(bootMac: string): { readonly token: string; readonly installCode: string | null };
  /** Says to the agent plane what an agent would say. */
  report(orderId: string, token: string, report: { result: string; message: string }): Promise<{ status: number; body: Record<string, unknown> }>;
  close(): Promise<void>;
}

const CONSUME = /^\/v1\/orders\/([^/]+)\/consume$/;

export async function startAgentProxy(): Promise<AgentProxy> {
  const port = await reservePort();
  const tokens = new Map<string, string>();
  const secrets = new Map<string, { token: string; installCode: string | null }>();
  const macs = new Map<string, string>();
  /** Who a challenge was for is in the hello; what came of it in the answer to the report. */
  const overhear = (path: string, asked: Buffer[], answered: Buffer[]): void => {
    try {
      const [said, got] = [asked, answered].map((parts) => JSON.parse(Buffer.concat(parts).toString('utf8')) as Record<string, string>);
      if (path === '/v1/attest/hello' && got!['challengeId']) macs.set(got!['challengeId'], said!['bootMac']!);
      if (path === '/v1/attest/report' && got!['token']) secrets.set(macs.get(said!['challengeId']!)!, { token: got!['token'], installCode: got!['installCode'] ?? null });
    } catch {
      // No JSON, nothing to overhear.
    }
  };
  const server: Server = createServer((incoming, outgoing) => {
    const order = CONSUME.exec(incoming.url ?? '')?.[1];
    const token = /^Bearer (.+)$/.exec(incoming.headers.authorization ?? '')?.[1];
    if (order && token) tokens.set(order, token);
    const asked: Buffer[] = [];
    const answered: Buffer[] = [];
    const onward = request({ host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.on('data', (part: Buffer) => void answered.push(part)).on('end', () => overhear(incoming.url ?? '', asked, answered));
      // A house that dies in the middle of an answer ends it for the node too.
      answer.on('aborted', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    incoming.on('data', (part: Buffer) => void asked.push(part));
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    env: { METALFLOW_AGENT_HTTP_PORT: String(port), METALFLOW_AGENT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    tokenOf(orderId) {
      const token = tokens.get(orderId);
      if (token === undefined) throw new Error(`nobody took order ${orderId}`);
      return token;
    },
    secretsOf(bootMac) {
      const found = secrets.get(bootMac);
      if (found === undefined) throw new Error(`${bootMac} did not attest`);
      return found;
    },
    async report(orderId, token, report) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/orders/${orderId}/report`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: JSON.stringify(report) });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
