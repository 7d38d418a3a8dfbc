/**
 * A tiny Redfish service by script: sessions, tags and one system, from DSP0266 alone. What goes wrong is the test's to say: `wrong`
 * sees every request first, and what it answers is what is sent. The journal holds what arrived, without passwords.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createRedfishBmc } from '../../src/bmc/redfish/client.js';
import type { Timeouts } from '../../src/bmc/http-once.js';
import type { Trust } from '../../src/bmc/trust.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { silentLogger, type Logger } from '../../src/telemetry/log.js';
import { ROOMY } from './amt.js';

export const MACHINE_UUID = '4c4c4544-0042-3510-8052-b4c04f564433';
export const CREDENTIALS = { username: 'admin', password: 'P@ssw0rd1!' };
export const SYSTEM = '/redfish/v1/Systems/1';
export const SESSIONS = '/redfish/v1/SessionService/Sessions';
export const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown> | null;
}
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object becomes JSON. */
  readonly body?: object | string;
}
/** `hang`: never answered. `drop`: the connection ends instead. Else the reply; undefined goes on as usual. */
export type Wrong = (asked: Asked, response: ServerResponse) => Reply | 'hang' | 'drop' | 'taken' | undefined;

export interface RedfishBench {
  /** The system as it is read; change it at will. */
  readonly system: Record<string, unknown> & { Boot?: Record<string, unknown> | null };
  readonly journal: Asked[];
  /** Open session tokens. */
  readonly sessions: Set<string>;
  wrong: Wrong | null;
  /** Requests of this method and path prefix, in words: `PATCH /redfish/v1/Systems/1 {...}`. */
  sent(...methods: string[]): string[];
  open(options?: { password?: string; timeouts?: Partial<Timeouts>; log?: Logger; address?: Partial<BmcAddress>; trust?: Trust }): Bmc;
  close(): Promise<void>;
}

export const redfishError = (id: string, Message: string, Resolution?: string): object => ({
  error: { code: `Base.1.8.${id}`, message: 'See @Message.ExtendedInfo', '@Message.ExtendedInfo': [{ MessageId: `Base.1.8.${id}`, Message, ...(Resolution && { Resolution }) }] },
});

export const systemAt = (path: string, members: object = {}): Record<string, unknown> => ({
  '@odata.id': path, Id: path.split('/').at(-1), Name: 'System', UUID: MACHINE_UUID, Manufacturer: 'ACME', Model: 'R1', PowerState: 'Off',
  Boot: { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None', BootSourceOverrideMode: 'Legacy', 'BootSourceOverrideTarget@Redfish.AllowableValues': ['None', 'Pxe', 'Hdd', 'UefiHttp'] },
  Links: { ManagedBy: [{ '@odata.id': '/redfish/v1/Managers/1' }] },
  Actions: { '#ComputerSystem.Reset': { target: `${path}/Actions/ComputerSystem.Reset`, 'ResetType@Redfish.AllowableValues': ['On', 'ForceOff', 'GracefulShutdown', 'ForceRestart'] } },
  ...members,
});

/** @param others further members of Systems, by path */
export async function startRedfishBench({ others = {}, sessions: hasSessions = true, tls }: { others?: Record<string, object>; sessions?: boolean; tls?: { key: string; cert: string } } = {}): Promise<RedfishBench> {
  const journal: Asked[] = [];
  const sessions = new Set<string>();
  const opened: Bmc[] = [];
  const system = systemAt(SYSTEM) as RedfishBench['system'];
  let tag = 1;
  let tokens = 0;

  function usual({ method, path, headers, body }: Asked): Reply {
    if (method === 'GET' && path === '/redfish/v1/') return { status: 200, body: { RedfishVersion: '1.6.0', Systems: { '@odata.id': '/redfish/v1/Systems' }, ...(hasSessions && { Links: { Sessions: { '@odata.id': SESSIONS } } }) } };
    if (method === 'POST' && path === SESSIONS) {
      if (body?.['UserName'] !== CREDENTIALS.username || body['Password'] !== CREDENTIALS.password) return { status: 401, body: redfishError('NoValidSession', 'no') };
      const token = `token-${++tokens}`;
      sessions.add(token);
      return { status: 201, headers: { 'x-auth-token': token, location: `http://bmc.behind.a.forward${SESSIONS}/${tokens}` }, body: {} };
    }
    const token = headers['x-auth-token'];
    const basic = `Basic ${Buffer.from(`${CREDENTIALS.username}:${CREDENTIALS.password}`).toString('base64')}`;
    if (!(typeof token === 'string' && sessions.has(token)) && headers.authorization !== basic) return { status: 401, body: redfishError('NoValidSession', 'no valid session') };
    if (method === 'DELETE' && path.startsWith(SESSIONS)) {
      sessions.delete(`token-${path.split('/').at(-1)}`);
      return { status: 204 };
    }
    if (method === 'GET' && path === '/redfish/v1/Systems') return { status: 200, body: { Members: [SYSTEM, ...Object.keys(others)].map((id) => ({ '@odata.id': id })) } };
    if (method === 'GET' && path === '/redfish/v1/Managers/1') return { status: 200, body: { FirmwareVersion: '2.71' } };
    if (method === 'GET' && path in others) return { status: 200, body: others[path]! };
    if (method === 'GET' && path === SYSTEM) return { status: 200, headers: { etag: `"${tag}"` }, body: system };
    if (method === 'PATCH' && path === SYSTEM) {
      if (headers['if-match'] !== undefined && headers['if-match'] !== `"${tag}"`) return { status: 412, body: redfishError('PreconditionFailed', 'the tag is old') };
      tag += 1;
      Object.assign(system.Boot!, body?.['Boot']);
      return { status: 204 };
    }
    if (method === 'POST' && path === RESET) {
      system['PowerState'] = body?.['ResetType'] === 'ForceOff' ? 'Off' : 'On';
      return { status: 204 };
    }
    return { status: 404, body: redfishError('ResourceMissingAtURI', `there is no ${path}`) };
  }

  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const asked: Asked = { method: request.method!, path: request.url!, headers: request.headers, body: text === '' ? null : (JSON.parse(text) as Record<string, unknown>) };
      journal.push(asked);
      const reply = bench.wrong?.(asked, response) ?? usual(asked);
      if (reply === 'hang' || reply === 'taken') return;
      if (reply === 'drop') return void request.socket.destroy();
      const { status, headers = {}, body } = reply;
      response.writeHead(status, { ...(typeof body === 'object' && { 'content-type': 'application/json' }), ...headers });
      response.end(typeof body === 'object' ? JSON.stringify(body) : body);
    });
  };
  const server: Server = tls ? createTlsServer(tls, serve) : createServer(serve);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const bench: RedfishBench = {
    system, journal, sessions, wrong: null,
    sent: (...methods) => journal.filter(({ method, path }) => methods.includes(method) && !path.startsWith(SESSIONS)).map(({ method, path, body }) => `${method} ${path.replace(SYSTEM, '')} ${JSON.stringify(body)}`),
    open({ password = CREDENTIALS.password, timeouts, log = silentLogger(), address, trust } = {}) {
      const bmc = createRedfishBmc({
        address: { type: 'redfish', host: '127.0.0.1', port, tls: tls !== undefined, ...address }, credentials: { ...CREDENTIALS, password }, secret: 'bmc-redfish', log, ...(trust && { trust }), timeouts: { ...ROOMY, ...timeouts },
      });
      opened.push(bmc);
      return bmc;
    },
    async close() {
      await Promise.all(opened.map((bmc) => bmc.close()));
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
  return bench;
}
