/** A small agent plane for the tests of the agent: real HTTP on loopback, answers that a test can script, everything written down. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createPublicKey, verify } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { AttestationReport } from '../../src/contracts/agent-api.js';
import type { AgentAction, Order, OrderReport, SeedFile } from '../../src/contracts/order.js';

export interface SeenRequest {
  readonly route: 'hello' | 'attest' | 'next' | 'consume' | 'progress' | 'report' | 'seed' | 'asset';
  readonly orderId: string | null;
  readonly token: string | null;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
  readonly text: string;
}

/** What a scripted answer does instead of the plane's own: a status with our error body, a whole handler, or silence. */
export type Scripted = number | 'silence' | 'cut' | ((request: SeenRequest, response: ServerResponse) => void);

/** Far away also for an agent whose waits are a thousand times shorter than it asks for; what a timer can hold. */
const NEVER_SECONDS = 1_000_000;

let drawn = 0;
export function orderOf(action: AgentAction, extra: Partial<Order> = {}): Order {
  drawn += 1;
  return { orderId: `order-${drawn}`, run: 1, title: action.name, action, timeoutSeconds: NEVER_SECONDS, destructive: true, grant: 1, ...extra };
}

export class AgentPlane {
  readonly seen: SeenRequest[] = [];
  readonly orders: Order[] = [];
  readonly assets = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>();
  seedFiles: SeedFile[] = [];
  installCode: string | undefined = 'code-0123456789';
  /** Consumed: order → token that did. */
  readonly consumed = new Map<string, string>();
  readonly reports = new Map<string, OrderReport>();
  private readonly scripts = new Map<SeenRequest['route'], Scripted[]>();
  private readonly waiters = new Set<() => void>();
  private readonly nonce = Buffer.alloc(32, 7).toString('base64');
  private akPublic = '';
  private tokens = 0;
  url = '';

  private readonly server = createServer((request, response) => {
    response.on('error', () => undefined);
    this.handle(request, response).catch(() => response.destroy());
  });

  async start(): Promise<this> {
    // Never the server: one that closes an idle connection may meet a request on it, which the agent then has to send again.
    this.server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** The next answers of a route, one each; then its own again. */
  script(route: SeenRequest['route'], ...answers: Scripted[]): void {
    this.scripts.set(route, [...(this.scripts.get(route) ?? []), ...answers]);
  }

  of(route: SeenRequest['route'], orderId?: string): SeenRequest[] {
    return this.seen.filter((request) => request.route === route && (orderId === undefined || request.orderId === orderId));
  }

  /** Resolves as soon as the condition holds, looked at after each request. */
  async until(condition: () => boolean, what: string, limitMs = 60_000): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiters.delete(look);
        reject(new Error(`never: ${what}; seen ${this.seen.map(({ route }) => route).join(' ')}`));
      }, limitMs);
      const look = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        this.waiters.delete(look);
        resolve();
      };
      this.waiters.add(look);
    });
  }

  reported(orderId: string): Promise<void> {
    return this.until(() => this.reports.has(orderId), `a report of ${orderId}`);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const path = (request.url ?? '').split('?')[0]!;
    const match = /^\/v1\/(?:attest\/(hello|report)|orders\/(next)|orders\/([^/]+)\/(consume|progress|report|seed))$/.exec(path);
    const route: SeenRequest['route'] = !match ? 'asset' : match[1] ? (match[1] === 'hello' ? 'hello' : 'attest') : ((match[2] ?? match[4]) as SeenRequest['route']);
    const seen: SeenRequest = {
      route, orderId: match?.[3] ?? null, token: request.headers.authorization?.replace('Bearer ', '') ?? null,
      headers: request.headers, text, body: text ? JSON.parse(text) : null,
    };
    this.seen.push(seen);
    const scripted = this.scripts.get(route)?.shift();
    if (scripted !== undefined) this.playScript(scripted, seen, response);
    else if (route === 'asset') (this.assets.get(path) ?? ((_, reply) => this.error(reply, 404, 'asset_not_found')))(request, response);
    else this.answer(seen, response);
    for (const look of [...this.waiters]) look();
  }

  private playScript(scripted: Scripted, seen: SeenRequest, response: ServerResponse): void {
    if (typeof scripted === 'function') scripted(seen, response);
    else if (scripted === 'cut') response.destroy();
    else if (scripted !== 'silence') this.error(response, scripted, `status_${scripted}`);
  }

  json(response: ServerResponse, body: unknown): void {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  error(response: ServerResponse, status: number, code: string, more: Record<string, unknown> = {}): void {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ code, message: code, hint: '', ...more }));
  }

  private answer(seen: SeenRequest, response: ServerResponse): void {
    const id = seen.orderId ?? '';
    switch (seen.route) {
      case 'hello':
        this.akPublic = (seen.body as { akPublic: string }).akPublic;
        return this.json(response, { challengeId: 'challenge-1', nonce: this.nonce, expiresAt: '2030-01-01T00:00:00Z' });
      case 'attest':
        return this.judge(seen.body as { report: string; signature: string }, response);
      case 'next': {
        const order = this.orders.find(({ orderId }) => !this.reports.has(orderId) && (this.consumed.get(orderId) ?? seen.token) === seen.token);
        return order ? this.json(response, order) : void response.writeHead(204).end();
      }
      case 'consume':
        this.consumed.set(id, seen.token ?? '');
        return this.json(response, { orderId: id, consumedAt: '2026-11-30T00:00:00Z', deadlineAt: '2026-11-30T01:00:00Z' });
      case 'progress':
        return this.json(response, { go: 'on' });
      case 'report':
        this.reports.set(id, this.reports.get(id) ?? (seen.body as OrderReport));
        return this.json(response, { report: 'taken' });
      case 'seed':
        return this.json(response, { files: this.seedFiles });
      case 'asset':
        return;
    }
  }

  /** Admits a report that the AK of the hello signed over this nonce, and nothing else. */
  private judge(body: { report: string; signature: string }, response: ServerResponse): void {
    const bytes = Buffer.from(body.report, 'base64');
    const key = createPublicKey({ key: Buffer.from(this.akPublic, 'base64'), format: 'der', type: 'spki' });
    const signed = verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(body.signature, 'base64'));
    if (!signed || (JSON.parse(bytes.toString('utf8')) as AttestationReport).nonce !== this.nonce) return this.error(response, 403, 'attestation_refused');
    this.tokens += 1;
    this.json(response, { token: `token-${this.tokens}`, nodeId: '7', bootAttempt: 'attempt-1', run: 1, installCode: this.installCode, waitFor: 'orders' });
  }
}
