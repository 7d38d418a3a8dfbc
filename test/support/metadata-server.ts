/** The metadata service on a real socket. Loopback peers stand for nodes that ask directly; forwarded addresses can be any. */
import { Writable } from 'node:stream';
import { createMetadataApi, type MetadataApiDeps } from '../../src/agentapi/metadata/metadata-api.js';
import type { Redemption } from '../../src/contracts/agent-desk.js';
import type { AddressLookup, MetadataSubject } from '../../src/contracts/metadata.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import { createLogger } from '../../src/telemetry/log.js';
import { createSeedRenderer } from '../../src/templates/seeds/index.js';
import { send, type Reply, type Sent } from './agent-api-server.js';

export const uuidOf = (number: number): string => `4c4c4544-0042-3510-8052-${String(number).padStart(12, '0')}`;
export const macOf = (number: number): string => `02:01:48:aa:bb:${number.toString(16).padStart(2, '0')}`;
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAs4PDxcL1kzZ1pUS0ZPYnFiVGdHTnR2QmRhZ0tX anna@example';

/** Node 5 has 10.0.0.5 and 127.0.0.5, and so on. */
export const subjectOf = (number: number, extra: Partial<MetadataSubject> = {}): MetadataSubject => ({
  deviceId: String(number), nodeName: `node-${number}`, systemUuid: uuidOf(number), run: 3, instanceId: `${uuidOf(number)}-3`, site: 'ams1', nodeClass: 'worker', payload: 'cloud-init-nocloud',
  seed: null, phoneHome: false, addresses: [`10.0.0.${number}`, '2001:db8::5'], macs: [macOf(number)], userData: null, sshKeys: [], network: null,
  tags: [], interfaces: [{ name: 'eth0', mac: macOf(number), addresses: [`10.0.0.${number}/24`, '2001:db8::5/64'] }], primary: [`10.0.0.${number}`], imageSha256: null, ...extra,
});

export const PROXY = '127.0.0.1';
/** What both of two devices declare. */
export const TWICE = '127.0.0.9';
export const AGENT_URL = 'https://agent.example:42114';

export interface MetadataServer {
  readonly port: number;
  readonly server: HttpServer;
  /** By peer and forwarded address. */
  readonly nodes: Map<string, MetadataSubject>;
  /** Session token to device. */
  readonly sessions: Map<string, string>;
  /** Install code to device; `spent` ones are refused as such. */
  readonly codes: Map<string, { deviceId: string; spent?: true }>;
  clock: { at: number };
  /** Everything logged so far, at the finest level. */
  logged(): string;
  /** @param peer the loopback address the request comes from */
  ask(peer: string, path: string, sent?: Omit<Sent, 'localAddress'>): Promise<Reply>;
}

const opened: HttpServer[] = [];

export async function openMetadata(options: Partial<MetadataApiDeps> & { seedsFolder?: string; secretsFolder?: string; host?: string; subjects?: readonly MetadataSubject[] } = {}): Promise<MetadataServer> {
  const { seedsFolder, secretsFolder, host = '127.0.0.1', subjects = [subjectOf(5), subjectOf(6)], ...deps } = options;
  const nodes = new Map(subjects.flatMap((subject) => [`127.0.0.${subject.deviceId}`, `10.0.0.${subject.deviceId}`].map((address) => [address, subject] as const)));
  const sessions = new Map<string, string>();
  const codes: MetadataServer['codes'] = new Map();
  const clock = { at: Date.parse('2026-11-30T12:00:00Z') };
  const subjectOfDevice = (deviceId: string): MetadataSubject | null => [...nodes.values()].find((subject) => subject.deviceId === deviceId) ?? null;
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString('utf8');
      done();
    },
  });
  const server = createMetadataApi({
    directory: {
      byAddress: async (address): Promise<AddressLookup> => {
        const subject = nodes.get(address);
        if (address === TWICE) return { kind: 'ambiguous', devices: ['node-5', 'node-6'] };
        return subject ? { kind: 'found', subject } : { kind: 'unknown' };
      },
      byDevice: async (deviceId) => subjectOfDevice(deviceId),
    },
    orders: {
      session: async (token) => {
        const deviceId = sessions.get(token);
        return deviceId === undefined ? null : { id: 'hash', deviceId, nodeName: `node-${deviceId}`, run: 3, bootAttempt: 'b', akThumbprint: 'ak' };
      },
    },
    seeds: {
      redeem: async ({ code, systemUuid }): Promise<Redemption> => {
        const known = codes.get(code);
        if (!known || subjectOfDevice(known.deviceId)?.systemUuid !== systemUuid) return { kind: 'unknown' };
        return known.spent ? { kind: 'spent' } : { kind: 'redeemed', deviceId: known.deviceId, nodeName: 'n', run: 3, systemUuid, first: true };
      },
    },
    renderer: createSeedRenderer({ agentUrl: AGENT_URL, metadataUrl: 'http://metadata.example:50061', ...(seedsFolder && { folder: seedsFolder }), ...(secretsFolder && { secretsFolder }) }),
    agentUrl: AGENT_URL, log: createLogger({ level: 'trace', role: 'test', destination }), trustedProxies: [PROXY], now: () => new Date(clock.at), ...deps,
  });
  opened.push(server);
  await server.listen({ port: 0, host });
  const { port } = server.server.address() as { port: number };
  return { port, server, nodes, sessions, codes, clock, logged: () => text, ask: (peer, path, sent) => send(port, path, { ...sent, localAddress: peer }) };
}

/** For afterEach. */
export async function closeMetadata(): Promise<void> {
  await Promise.all(opened.splice(0).map((server) => server.close()));
}
