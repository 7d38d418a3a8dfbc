/** The boot plane over HTTP: iPXE scripts, the netboot system and class images. Every bootable byte asks the gate first. */
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BootDecision, BootDirectory, BootGate, BootRequest } from '../contracts/boot.js';
import { failure, isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import { normalizeMac } from '../domain/mac.js';
import { createHttpServer, type HttpServer } from '../telemetry/http.js';
import type { Listeners } from '../telemetry/listening.js';
import type { Logger } from '../telemetry/log.js';
import { createDigests } from './assets/digests.js';
import { createDownloads } from './assets/downloads.js';
import { createListing, type ClassImageRef } from './assets/listing.js';
import { sendFile, type Caching } from './assets/send.js';
import { createBootFiles, type BootFiles } from './files.js';
import type { BootWhy } from './gate.js';
import { bootDiskScript, netbootScript } from './ipxe/scripts.js';
import type { NodeMac } from './ipxe/script.js';
import { within } from './patience.js';
import { plainAddress } from './sender.js';
import { IMAGES_FOLDER, type BootSettings } from './settings.js';
import { readName } from './tftp/names.js';

/** How a node's own programs name their MAC; iPXE uses the query `mac`. */
export const BOOT_MAC_HEADER = 'x-metalflow-boot-mac';
const STORE_MS = 1500;
const UNKNOWN_DEVICE: BootWhy = 'unknown_device';
const RECORD_TRIES = 3;
const RECORD_AGAIN_MS = 200;
const MOST_CONNECTIONS = 4096;

export interface BootHttpDeps {
  readonly gate: BootGate;
  readonly directory: Pick<BootDirectory, 'rememberSender' | 'forgetSender' | 'recordBootSeen'>;
  readonly settings: BootSettings;
  /** Folder of the netboot system and, below `images/`, of class images. */
  readonly assetsDir: string;
  /** The iPXE programs, the same as over TFTP. */
  readonly binaries: BootFiles;
  readonly log: Logger;
  /** Resolves when the plane can answer as it should; rejects with the reason. */
  readonly ready: () => Promise<void>;
  readonly trustedProxies?: readonly string[];
  /** Every port of the role, by name; the plane tells them to whoever asks for its health. */
  readonly listeners?: () => Listeners;
  /** The classes whose image is served from here. */
  readonly classImages?: () => Promise<readonly ClassImageRef[]>;
  /** Downloads that one address may have under way. */
  readonly downloadsOfOne?: number;
}

export interface BootPlane {
  /** A server of the plane, not listening yet; with a certificate it speaks TLS. All of them share what the plane knows. */
  server(https?: { key: Buffer; cert: Buffer }): HttpServer;
  /** Begins to take the digests of the class images, so that the first node need not wait for them. */
  warm(): Promise<void>;
}

/** One server of a plane. */
export const createBootHttp = (deps: BootHttpDeps): HttpServer => createBootPlane(deps).server();

export function createBootPlane({
  gate, directory, settings, assetsDir, binaries, log, ready, trustedProxies, listeners = () => ({}), classImages = async () => [], downloadsOfOne,
}: BootHttpDeps): BootPlane {
  const downloads = createDownloads(downloadsOfOne);
  const assets = createBootFiles({ roots: [assetsDir], log });
  const assetDigests = createDigests({ files: assets, log });
  const binaryDigests = createDigests({ files: binaries, log });
  const listing = createListing({ files: assets, digests: assetDigests, classImages });

  return {
    server(https) {
      const server = createHttpServer({ log, trustedProxies, ...(https && { https }) });
      server.server.maxConnections = MOST_CONNECTIONS;
      addRoutes(server);
      return server;
    },
    async warm() {
      await listing.images();
    },
  };

  function addRoutes(server: HttpServer): void {
    server.get('/healthz', async () => ({ status: 'ok', listeners: listeners() }));
    server.get('/readyz', async (_request, reply) => {
      const problem = await whatIsMissing();
      if (problem) reply.status(503);
      return { status: problem ? 'not-ready' : 'ready', ...problem, listeners: listeners() };
    });

    // HEAD would be taken for a boot; without a route of its own fastify makes it from GET.
    server.get('/ipxe/script/:mac/auto.ipxe', { exposeHeadRoute: false, schema: { params: z.object({ mac: z.string() }) } }, async (request, reply) => {
      const mac = normalizeMac(request.params.mac);
      return sendScript(request, reply, { kind: 'known', mac });
    });
    server.get('/auto.ipxe', { exposeHeadRoute: false }, async (request, reply) => sendScript(request, reply, { kind: 'of-the-boot-nic' }));

    server.route({
      method: ['GET', 'HEAD'],
      url: '/ipxe/binary/*',
      handler: async (request, reply) => {
        const name = readName((request.params as { '*': string })['*']);
        if (name.kind === 'refused') throw new MetalflowError('asset_not_found', { path: 'of that name' });
        await pass({ artefact: 'binary', mac: name.mac ?? namedMac(request), sender: senderOf(request), path: name.path });
        return downloads.during(senderOf(request), () => sendNamed(request, reply, binaries, name.path, binaryDigests, 'gated'));
      },
    });

    // The list is open as the images are.
    server.get('/assets/images/', async (_request, reply) => {
      reply.header('cache-control', 'no-cache');
      return { images: await listing.images() };
    });
    server.get('/assets/images/SHA256SUMS', async (_request, reply) => reply.type('text/plain; charset=utf-8').header('cache-control', 'no-cache').send(await listing.sums()));

    server.route({
      method: ['GET', 'HEAD'],
      url: '/assets/*',
      handler: async (request, reply) => {
        const name = (request.params as { '*': string })['*'];
        // Class images are open to the node network. They are what any installed node holds: no secret is in them (codes and seeds
        // come from the agent plane), a node checks them against the digest of its class, and firmware that fetched one could not
        // boot it. Asking the gate would break installs instead: the installing system may speak from an address that nobody
        // declared. Everything else here may be booted, so what is not known to be an image asks.
        const open = name.startsWith(IMAGES_FOLDER);
        if (!open) await pass({ artefact: 'asset', mac: namedMac(request), sender: senderOf(request), path: name });
        return downloads.during(senderOf(request), () => sendNamed(request, reply, assets, name, assetDigests, open ? 'open' : 'gated'));
      },
    });
  }

  /** Null when the plane can answer as it should. What it needs is asked for a limited time. */
  async function whatIsMissing(): Promise<Failure | null> {
    for (const [name, listener] of Object.entries(listeners())) if (listener.state === 'failed') return failure('listener_failed', { name, why: listener.why });
    try {
      await within(STORE_MS, ready);
      return null;
    } catch (error) {
      return isMetalflowError(error) ? error.toFailure() : failure('store_unavailable', { why: 'the read failed' });
    }
  }

  async function sendScript(request: FastifyRequest, reply: FastifyReply, mac: NodeMac): Promise<FastifyReply> {
    const sender = senderOf(request);
    const decision = await gate.decide({ artefact: 'script', mac: mac.kind === 'known' ? mac.mac : null, sender, path: request.url.split('?')[0]! });
    if (decision.kind === 'silent') throw new MetalflowError('route_not_found', { route: 'such script' });
    if (mac.kind === 'known') await remember(mac.mac, sender, decision);
    return reply.type('text/plain; charset=utf-8').header('cache-control', 'no-store').send(await scriptFor(decision, mac));
  }

  /** What cannot be rendered or recorded is the disk: a boot that the run does not hear of would only be powered off again. */
  async function scriptFor(decision: BootDecision, mac: NodeMac): Promise<string> {
    try {
      if (decision.kind === 'wait-menu') return netbootScript(settings, { mac, purpose: { kind: 'wait' } });
      if (decision.kind !== 'run-boot') return bootDiskScript();
      const { subject, permission } = decision;
      const script = netbootScript(settings, { mac, purpose: { kind: 'run', deviceId: subject.deviceId, run: permission.run } });
      await recordSeen(permission.bootAttempt);
      return script;
    } catch (error) {
      const code = isMetalflowError(error) ? error.code : 'unexpected';
      log.error({ device: decision.subject?.deviceId ?? null, code, reason: (error as Error).message }, 'the script of a run is not served; the node boots its disk');
      return bootDiskScript();
    }
  }

  async function recordSeen(bootAttempt: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await within(STORE_MS, (signal) => directory.recordBootSeen(bootAttempt, signal));
      } catch (error) {
        if (attempt === RECORD_TRIES) throw error;
        await setTimeout(RECORD_AGAIN_MS);
      }
    }
  }

  /** Only a device we know: a stranger must not fill the store with addresses, but no longer speaks as who had this one before. */
  async function remember(mac: string, sender: string, { subject, why }: BootDecision): Promise<void> {
    try {
      if (subject) await within(STORE_MS, (signal) => directory.rememberSender(mac, sender, signal));
      else if (why === UNKNOWN_DEVICE) await within(STORE_MS, () => directory.forgetSender(sender));
    } catch (error) {
      // The boot goes on: only requests without a MAC need the address.
      log.warn({ mac, sender, reason: (error as Error).message }, 'the sender of a boot request is not remembered');
    }
  }

  async function pass(request: BootRequest): Promise<void> {
    const { kind } = await gate.decide(request);
    if (kind === 'silent') throw new MetalflowError('asset_not_found', { path: request.path.slice(0, 200) });
    if (kind === 'boot-disk') throw new MetalflowError('netboot_not_allowed');
  }
}

async function sendNamed(request: FastifyRequest, reply: FastifyReply, files: BootFiles, name: string, digests: ReturnType<typeof createDigests>, caching: Caching): Promise<FastifyReply> {
  const file = await files.open(name);
  if (!file) throw new MetalflowError('asset_not_found', { path: name.slice(0, 200) });
  return sendFile(request, reply, file, digests, caching);
}

const senderOf = (request: FastifyRequest): string => plainAddress(request.ip);

/**
 * The MAC of the query or the header, null when there is none. Anybody can write one: a MAC is a name, no credential. So the gate keeps a
 * machine from booting what it should not by accident (its own stale boot order, a script kept by a proxy, a file asked for after the run),
 * and keeps nothing secret: whoever is on the node network can read kernel, initrd and UKI by naming a node that boots just now, and so
 * nothing in them is one. Who a node is shows in its attestation, and only then does it get orders, codes or a seed, from the agent plane.
 * @throws mac_invalid
 */
function namedMac(request: FastifyRequest): string | null {
  const { mac } = request.query as { mac?: unknown };
  const named = mac ?? request.headers[BOOT_MAC_HEADER];
  if (named === undefined) return null;
  return normalizeMac(typeof named === 'string' ? named : '');
}
