/** NetBox's webhooks: signed, sent one after the other, tried once (NetBox's default), and lost when that fails. */
import { createHmac, randomUUID } from 'node:crypto';
import { request } from 'undici';
import type { Logger } from '../../telemetry/log.js';

export interface WebhookTarget {
  readonly url: string;
  /** Without one NetBox sends no signature. */
  readonly secret: string;
}

export interface Delivery {
  readonly event: 'created' | 'updated' | 'deleted';
  readonly deviceId: string;
  /** The exact bytes, to send them again as an operator re-queues a failed job. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** null while it is under way. */
  readonly outcome: { readonly kind: 'answered'; readonly status: number } | { readonly kind: 'failed'; readonly why: string } | { readonly kind: 'dropped' } | null;
}

export interface HookEvent {
  readonly event: Delivery['event'];
  readonly deviceId: number;
  readonly data: unknown;
  readonly snapshots: { readonly prechange: unknown; readonly postchange: unknown };
  readonly request: { readonly id: string; readonly path: string; readonly method: string; readonly user: string };
  readonly at: string;
}

const TIMEOUT_MS = 30_000;

export const newRequestId = (): string => randomUUID();

/** X-Hook-Signature: HMAC-SHA512 over the raw body, hex, no prefix. */
export const signHook = (body: string, secret: string): string => createHmac('sha512', secret).update(body).digest('hex');

export function createWebhooks(options: { target(): WebhookTarget | null; drops(): boolean; log: Logger }) {
  const deliveries: Delivery[] = [];
  let queue: Promise<void> = Promise.resolve();

  async function deliver(index: number, url: string): Promise<void> {
    const delivery = deliveries[index]!;
    let outcome: Delivery['outcome'];
    try {
      const { statusCode, body } = await request(url, { method: 'POST', headers: delivery.headers, body: delivery.body, signal: AbortSignal.timeout(TIMEOUT_MS) });
      await body.dump();
      outcome = { kind: 'answered', status: statusCode };
    } catch (error) {
      outcome = { kind: 'failed', why: String((error as Error).message) };
      options.log.debug({ err: error }, 'webhook was not delivered');
    }
    deliveries[index] = { ...delivery, outcome };
  }

  function send(hook: HookEvent): void {
    const target = options.target();
    if (!target) return;
    const body = JSON.stringify({
      event: hook.event, timestamp: hook.at.replace(/Z$/, '+00:00'), object_type: 'dcim.device', data: hook.data,
      request: { id: hook.request.id, path: hook.request.path, path_info: hook.request.path, method: hook.request.method, GET: {}, user: hook.request.user },
      snapshots: hook.snapshots,
    });
    const headers = { 'content-type': 'application/json', 'user-agent': 'python-urllib3/2.8.0', ...(target.secret && { 'x-hook-signature': signHook(body, target.secret) }) };
    const index = deliveries.push({ event: hook.event, deviceId: String(hook.deviceId), body, headers, outcome: options.drops() ? { kind: 'dropped' } : null }) - 1;
    if (deliveries[index]!.outcome === null) queue = queue.then(() => deliver(index, target.url));
  }

  return { send, deliveries: (): readonly Delivery[] => [...deliveries], settled: (): Promise<void> => queue };
}
export type Webhooks = ReturnType<typeof createWebhooks>;
