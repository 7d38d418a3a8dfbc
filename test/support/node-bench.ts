/** A simulated node with everything around it: a folder, a boot plane of fakes, and an agent that only says that it was started. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DiskFile } from '../../src/simulator/node/disk-file.js';
import type { ReadDiskFile } from '../../src/simulator/node/installed/seed.js';
import type { AgentDisk, AgentMachine } from '../../src/contracts/agent-machine.js';
import { createSimulatedNode, type SimulatedNode, type SimulatedNodeOptions } from '../../src/simulator/node/simulated-node.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { startFakeTftp, type FakeTftp, type TftpHabit } from './fake-tftp.js';
import { partitionTable } from './partition-table.js';

export const MAC = '02:01:48:aa:bb:0c';
export const UUID = '0e4c1a52-0000-4000-8000-000000000001';
export const SCRIPT_PATH = `/ipxe/script/${MAC}/auto.ipxe`;
const MIB = 1024 * 1024;
const ANSWERING: readonly TftpHabit[] = ['serve', 'refuse', 'lie'];

/** Ends what would never end: far beyond what a laden machine needs for a boot. */
export const soon = (): AbortSignal => AbortSignal.timeout(120_000);

export type Route = string | ((request: IncomingMessage & { text: string }, response: ServerResponse) => void);

/** An agent that was started. It does nothing by itself: the test works on its machine. */
export interface StartedAgent {
  readonly machine: AgentMachine;
  readonly api: string;
  stopped: boolean;
}

export interface NodeBench {
  readonly tftp: FakeTftp;
  readonly url: string;
  /** By path and query; unknown is 404. */
  readonly routes: Map<string, Route>;
  /** `GET /path`, as they came. */
  readonly requests: string[];
  readonly agents: StartedAgent[];
  readonly diskFiles: Map<string, Buffer>;
  readonly dir: string;
  node(options?: Partial<SimulatedNodeOptions>): SimulatedNode;
  /** Gives the node's first disk a partition table. */
  partition(node: SimulatedNode): void;
  /** Resolves when a request has come that fits. */
  hears(request: string): Promise<void>;
  close(): Promise<void>;
}

async function openPlainDisk(file: DiskFile): Promise<AgentDisk> {
  const { path: _, ...disk } = file;
  return {
    ...disk,
    async open() {
      const handle = await open(file.path, 'r+');
      return {
        serial: file.serial, sizeBytes: file.sizeBytes, fd: handle.fd,
        async read(position, length) {
          const bytes = Buffer.alloc(length);
          await handle.read(bytes, 0, length, position);
          return bytes;
        },
        async write(position, bytes) {
          await handle.write(bytes, 0, bytes.length, position);
        },
        discard: async () => false,
        flush: () => handle.datasync(),
        close: () => handle.close(),
      };
    },
  };
}

export async function startNodeBench({ habit, packets, bootFile = Buffer.alloc(5000, 'ipxe') }: { habit?: TftpHabit; packets?: readonly Buffer[]; bootFile?: Buffer } = {}): Promise<NodeBench> {
  const tftp = await startFakeTftp({ file: bootFile, habit, packets });
  const routes = new Map<string, Route>();
  const requests: string[] = [];
  const waiting: { request: string; resolve: () => void }[] = [];
  const agents: StartedAgent[] = [];
  const diskFiles = new Map<string, Buffer>();
  const nodes: SimulatedNode[] = [];
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-node-'));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const told = `${request.method} ${request.url}`;
      requests.push(told);
      for (const wait of waiting) if (wait.request === told) wait.resolve();
      const route = routes.get(request.url ?? '');
      if (typeof route === 'function') return route(Object.assign(request, { text: Buffer.concat(chunks).toString() }), response);
      response.writeHead(route === undefined ? 404 : 200).end(route);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // A server that answers is waited for, however slow this machine is; one that does not is given up soon.
  const answers = habit === undefined || ANSWERING.includes(habit);
  const patience = answers ? { timeoutMs: 20_000, tries: 3 } : { timeoutMs: 60, tries: 2 };
  const readDiskFile: ReadDiskFile = async (_, place, path) => diskFiles.get(`${place}:${path}`) ?? null;

  return {
    tftp, url, routes, requests, agents, diskFiles, dir,
    node(options = {}) {
      const node = createSimulatedNode({
        dir,
        systemUuid: UUID,
        macs: [MAC],
        disks: [{ name: 'vda', serial: 'S1', model: 'simulated', sizeBytes: 4 * MIB, bus: 'virtio' }],
        firmware: { tftp: { host: '127.0.0.1', port: tftp.port, ...patience }, bootFile: '<mac>/ipxe.efi', scriptUrl: `${url}/ipxe/script/<mac>/auto.ipxe` },
        startAgent: (machine, api) => {
          const agent = { machine, api, stopped: false };
          agents.push(agent);
          return { stop: () => void (agent.stopped = true) };
        },
        openDisk: openPlainDisk,
        readDiskFile,
        seed: { delayMs: 0, tries: 3, everyMs: 0 },
        log: silentLogger(),
        ...options,
      });
      nodes.push(node);
      return node;
    },
    partition: (node) => writeFileSync(node.disks()[0]!.path, partitionTable(), { flag: 'r+' }),
    hears: (request) => new Promise((resolve) => {
      if (requests.includes(request)) resolve();
      else waiting.push({ request, resolve });
    }),
    async close() {
      for (const node of nodes) await node.close();
      await tftp.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A script that boots a kernel and an initrd into an agent of this plane. */
export const netbootScript = (url: string): string => `#!ipxe\nkernel /assets/vmlinuz metalflow_url=${url} hw_addr=\${mac} worker_id=\${mac} || exit\ninitrd --name initrd /assets/initramfs || exit\nboot || exit\n`;

export function serveNetboot(bench: NodeBench): void {
  bench.routes.set(SCRIPT_PATH, netbootScript(bench.url));
  bench.routes.set('/assets/vmlinuz', 'a kernel');
  bench.routes.set('/assets/initramfs', 'an initrd');
}
