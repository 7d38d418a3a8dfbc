/**
 * A NetBox for the demo and the fast tests: its REST shapes, its ETags, its refusals and its signed webhooks, in memory.
 * Drawn from captures of NetBox 4.7.3.
 */
import Fastify from 'fastify';
import type { AddressInfo } from 'node:net';
import { timingSafeEqual } from 'node:crypto';
import { MetalflowError } from '../../domain/errors.js';
import type { Logger } from '../../telemetry/log.js';
import { SITE_FIELDS, type FieldSet } from './custom-fields.js';
import { createRecords, type Change, type DeviceChange, type DeviceRecord, type JournalRecord, type NewDevice } from './records.js';
import { Refusal } from './refusal.js';
import { showDevice, snapshot } from './representations.js';
import { addRoutes } from './routes.js';
import { createStamps } from './stamps.js';
import { createWebhooks, newRequestId, type Delivery, type WebhookTarget } from './webhooks.js';

export interface StandInOptions {
  readonly host?: string;
  /** 0, the default, takes any. */
  readonly port?: number;
  /** The one token it knows, v1 or v2. */
  readonly token: string;
  readonly webhook?: WebhookTarget;
  /** Custom fields the site has; by default the ones metalflow asks for. */
  readonly fields?: FieldSet;
  readonly log: Logger;
  readonly now?: () => Date;
}

export interface NetboxStandIn {
  readonly url: string;
  /** Where hooks go; may be set once the receiver listens. */
  webhook: WebhookTarget | null;
  /** Hooks are lost, as when NetBox's worker is away. */
  dropWebhooks: boolean;
  /** Connections break, as when NetBox is away. */
  down: boolean;
  /** Declares a device, as a person does. @returns its id */
  addDevice(device: NewDevice): string;
  /** A person's edit; the body of a PATCH, raw values. @throws Refusal as the REST API refuses */
  patchDevice(id: string, change: DeviceChange): void;
  deleteDevice(id: string): void;
  /** @throws Refusal 404 */
  device(id: string): DeviceRecord;
  /** Entries of a device, oldest first. */
  journal(id: string): readonly JournalRecord[];
  /** Every hook so far, oldest first. */
  deliveries(): readonly Delivery[];
  /** Resolves when every hook so far was answered, failed or dropped. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** @throws port_in_use */
export async function startNetboxStandIn(options: StandInOptions): Promise<NetboxStandIn> {
  const fields = options.fields ?? SITE_FIELDS;
  const stamp = createStamps(options.now ?? (() => new Date()));
  const records = createRecords({ fields, stamp });
  const state = { webhook: options.webhook ?? null, dropWebhooks: false, down: false, url: '' };
  const webhooks = createWebhooks({ target: () => state.webhook, drops: () => state.dropWebhooks, log: options.log });

  function announce({ before, after }: Change, request: { id: string; path: string; method: string; user: string }): void {
    const device = (after ?? before)!;
    webhooks.send({
      event: before === null ? 'created' : after === null ? 'deleted' : 'updated',
      deviceId: device.id,
      data: showDevice('', fields, device),
      snapshots: { prechange: before && snapshot(before), postchange: after && snapshot(after) },
      request,
      at: stamp(),
    });
  }
  const byPerson = (change: Change, method: string): void =>
    announce(change, { id: newRequestId(), path: `/api/dcim/devices/${(change.after ?? change.before)!.id}/`, method, user: 'a-person' });

  const server = Fastify({ logger: false, bodyLimit: 1024 * 1024, forceCloseConnections: true });
  server.addHook('onRequest', async (request, reply) => {
    if (state.down) {
      reply.hijack();
      request.raw.socket.destroy();
      return;
    }
    reply.header('x-request-id', newRequestId()).header('api-version', '4.7');
    refuseWrongToken(request.headers.authorization, options.token);
  });
  server.setErrorHandler((error, _request, reply) => {
    if (error instanceof Refusal) return reply.status(error.status).headers(error.headers).send(error.body);
    const status = (error as { statusCode?: number }).statusCode ?? 500;
    return reply.status(status).send({ detail: status === 500 ? 'A server error occurred.' : String((error as Error).message) });
  });
  server.setNotFoundHandler(() => {
    throw new Refusal(404, { detail: 'Not found.' });
  });
  addRoutes(server, {
    records,
    fields,
    base: () => state.url,
    wrote: (change, id, path) => announce(change, { id, path, method: 'PATCH', user: 'metalflow' }),
  });

  const host = options.host ?? '127.0.0.1';
  try {
    await server.listen({ host, port: options.port ?? 0 });
  } catch (error) {
    throw new MetalflowError('port_in_use', { what: 'the NetBox stand-in', address: `${host}:${options.port ?? 0}`, why: (error as Error).message }, { cause: error });
  }
  state.url = `http://${host}:${(server.server.address() as AddressInfo).port}`;

  return {
    get url() { return state.url; },
    get webhook() { return state.webhook; },
    set webhook(target) { state.webhook = target; },
    get dropWebhooks() { return state.dropWebhooks; },
    set dropWebhooks(drop) { state.dropWebhooks = drop; },
    get down() { return state.down; },
    set down(down) { state.down = down; },
    addDevice(device) {
      const change = records.add(device);
      byPerson(change, 'POST');
      return String(change.after.id);
    },
    patchDevice: (id, change) => byPerson(records.patch(Number(id), change), 'PATCH'),
    deleteDevice: (id) => byPerson(records.remove(Number(id)), 'DELETE'),
    device: (id) => records.find(Number(id)),
    journal: (id) => records.journal(Number(id)),
    deliveries: () => webhooks.deliveries(),
    settled: () => webhooks.settled(),
    async close() {
      await webhooks.settled();
      await server.close();
    },
  };
}

/** A bad token is a 403 in NetBox, not a 401. */
function refuseWrongToken(header: string | undefined, token: string): void {
  const v2 = token.startsWith('nbt_');
  const expected = Buffer.from(`${v2 ? 'Bearer' : 'Token'} ${token}`);
  const given = Buffer.from(header ?? '');
  if (given.length === 0) throw new Refusal(403, { detail: 'Authentication credentials were not provided.' });
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new Refusal(403, { detail: `Invalid ${v2 ? 'v2' : 'v1'} token` });
}
