/** The routes of NetBox's REST API that metalflow uses. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { FieldSet } from './custom-fields.js';
import { filterDevices, page, valuesOf, type ListQuery } from './lists.js';
import { notFound, Refusal } from './refusal.js';
import type { Change, DeviceChange, DeviceRecord, Records } from './records.js';
import { showAddress, showDevice, showInterface, showJournalEntry, showMac } from './representations.js';
import { etagOf } from './stamps.js';

export interface RouteDeps {
  readonly records: Records;
  readonly fields: FieldSet;
  /** The server's own URL. */
  base(): string;
  /** Tells the webhooks of a write through REST. */
  wrote(change: Change, requestId: string, path: string): void;
}

const KINDS = ['info', 'success', 'warning', 'danger'];

export function addRoutes(server: FastifyInstance, deps: RouteDeps): void {
  const { records } = deps;
  const one = (request: FastifyRequest): DeviceRecord => records.find(Number((request.params as { id: string }).id));
  const sendDevice = (reply: FastifyReply, device: DeviceRecord): FastifyReply => reply.header('etag', etagOf(device.lastUpdated)).send(showDevice(deps.base(), deps.fields, device));

  server.get('/api/status/', () => ({ 'netbox-version': '4.7.3', 'netbox-full-version': '4.7.3', plugins: {}, 'rq-workers-running': 1 }));

  server.get('/api/dcim/devices/', (request) => {
    const query = request.query as ListQuery;
    return page(`${deps.base()}/api/dcim/devices/`, query, filterDevices(records.all(), query).map((device) => showDevice(deps.base(), deps.fields, device) as { id: unknown }));
  });

  server.get('/api/dcim/devices/:id/', (request, reply) => sendDevice(reply, one(request)));

  server.patch('/api/dcim/devices/:id/', (request, reply) => {
    const body = request.body;
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Refusal(400, { non_field_errors: ['Invalid data. Expected a dictionary.'] });
    if ('changelog_message' in body && String(body.changelog_message).length > 200) throw new Refusal(400, { changelog_message: ['Ensure this field has no more than 200 characters.'] });
    const change = records.patch(one(request).id, body as DeviceChange, request.headers['if-match']);
    deps.wrote(change, String(reply.getHeader('x-request-id')), request.url);
    return sendDevice(reply, change.after);
  });

  /** Lists of what hangs on the interfaces of these devices. */
  const hanging = (path: string, show: (device: DeviceRecord) => Record<string, unknown>[]): void => {
    server.get(path, (request) => {
      const query = request.query as ListQuery;
      const devices = valuesOf(query, 'device_id').map((asked) => {
        const device = records.all().find(({ id }) => String(id) === asked);
        // NetBox's filter form refuses the id of a device that is not there.
        if (!device) throw new Refusal(400, { device_id: [`Select a valid choice. ${asked} is not one of the available choices.`] });
        return device;
      });
      return page(`${deps.base()}${path}`, query, devices.flatMap(show) as { id: unknown }[]);
    });
  };
  hanging('/api/dcim/interfaces/', (device) => device.interfaces.map((own) => showInterface(deps.base(), device, own)));
  hanging('/api/dcim/mac-addresses/', (device) => device.interfaces.filter((own) => own.mac).map((own) => showMac(deps.base(), device, own)));
  hanging('/api/ipam/ip-addresses/', (device) => device.interfaces.flatMap((own) => own.addresses.map((address) => showAddress(deps.base(), device, own, address))));

  server.post('/api/extras/journal-entries/', (request, reply) => {
    const body = (request.body ?? {}) as Record<string, unknown>;
    if (body.assigned_object_type !== 'dcim.device') throw notFound('ContentType');
    if (typeof body.comments !== 'string' || body.comments === '') throw new Refusal(400, { comments: ['This field may not be blank.'] });
    if (!KINDS.includes(String(body.kind))) throw new Refusal(400, { kind: [`"${String(body.kind)}" is not a valid choice.`] });
    const entry = records.addJournalEntry({ deviceId: Number(body.assigned_object_id), kind: String(body.kind), comments: body.comments });
    return reply.status(201).send(showJournalEntry(deps.base(), entry));
  });
}
