/** POST /webhooks/netbox: a signed hint that a device should be read again. Answered 202 once it is safe to forget. */
import type { DeviceHint, HookLedger, NodeWorkflows } from '../contracts/operator.js';
import { SIGNALS } from '../contracts/messages.js';
import type { HttpServer } from '../telemetry/http.js';
import type { CrashPoint } from '../telemetry/crash-point.js';
import type { Logger } from '../telemetry/log.js';
import { ask, LIMITS_MS } from './ask.js';
import { checkSignature } from './hook-signature.js';
import { readHook } from './netbox-hook.js';

/** What NetBox, and whoever looks at its failed jobs, is told. */
export interface HookAnswer {
  readonly taken: 'signalled' | 'repeated' | 'stale' | 'ignored';
  readonly deviceId?: string;
  readonly why?: string;
}

export interface WebhookDeps {
  readonly hooks: HookLedger;
  readonly workflows: NodeWorkflows;
  readonly secret: string;
  readonly log: Logger;
  readonly crash?: CrashPoint;
}

const NOT_NEW = { repeated: 'nothing that metalflow reads has changed', stale: 'a newer state of this device is known already' } as const;

export function addWebhookRoute(server: HttpServer, deps: WebhookDeps): void {
  // A scope of its own: the signature is over the raw bytes, so here nothing may parse them first.
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.post('/webhooks/netbox', { config: { role: 'open', summary: 'A webhook of NetBox, signed with X-Hook-Signature' } }, async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      checkSignature(body, request.headers['x-hook-signature'], deps.secret);
      return reply.status(202).send(await take(body, deps));
    });
  });
}

/** @throws body_invalid, store_unavailable, temporal_unavailable; NetBox may send it again, and the reconcile repairs what it does not */
async function take(body: Buffer, deps: WebhookDeps): Promise<HookAnswer> {
  const reading = readHook(body);
  if (reading.kind === 'ignored') return { taken: 'ignored', why: reading.why };
  const { hint, note } = reading;
  const verdict = await ask('store_unavailable', LIMITS_MS.read, () => deps.hooks.judge(hint));
  deps.log.info({ deviceId: hint.deviceId, event: hint.event, lastUpdated: hint.lastUpdated, verdict }, 'webhook of NetBox');
  if (verdict !== 'new') return { taken: verdict, deviceId: hint.deviceId, why: NOT_NEW[verdict] };
  await ask('temporal_unavailable', LIMITS_MS.read, () => deps.workflows.signalLifecycle(hint.deviceId, SIGNALS.deviceChanged.name, { source: 'webhook' }));
  deps.crash?.('hook-signalled');
  await remember(hint, deps);
  return { taken: 'signalled', deviceId: hint.deviceId, ...(note !== null && { why: note }) };
}

/** The signal is out; forgetting it costs one signal more when NetBox repeats itself. */
async function remember(hint: DeviceHint, deps: WebhookDeps): Promise<void> {
  try {
    await ask('store_unavailable', LIMITS_MS.read, () => deps.hooks.remember(hint));
  } catch (error) {
    deps.log.warn({ err: error, deviceId: hint.deviceId }, 'webhook was signalled and not remembered');
  }
}
