/** The real agent and its disk work, plugged into a simulated node: what main does, for tests. */
import { open } from 'node:fs/promises';
import { runAgent, type AgentDeps } from '../../src/agent/agent.js';
import { createDiskHandle } from '../../src/agent/disk-handle.js';
import { createExt4Files } from '../../src/agent/ext4-files.js';
import { readFatFile } from '../../src/agent/fat-files.js';
import { fileDisk } from '../../src/agent/file-disk.js';
import { findEfiPartition, findRootPartition } from '../../src/agent/partitions.js';
import type { SimulatedNodeOptions } from '../../src/simulator/node/simulated-node.js';
import { silentLogger } from '../../src/telemetry/log.js';

export function agentWiring(agent: Partial<AgentDeps> = {}): Pick<SimulatedNodeOptions, 'startAgent' | 'openDisk' | 'readDiskFile'> {
  const ext4 = createExt4Files();
  return {
    startAgent(machine, api) {
      const stopping = new AbortController();
      const ended = runAgent({ api, machine, log: silentLogger(), signal: stopping.signal, ...agent });
      return {
        async stop() {
          stopping.abort();
          await ended;
        },
      };
    },
    openDisk: (disk) => fileDisk(disk),
    async readDiskFile(path, place, name) {
      // The ext4 library reads only what it could also write.
      const handle = await open(path, 'r+');
      try {
        const { size: sizeBytes } = await handle.stat();
        const disk = createDiskHandle({ handle, serial: path, sizeBytes });
        if (place === 'efi') return await readFatFile(disk, await findEfiPartition(disk), name);
        const folder = `/${name.slice(0, name.lastIndexOf('/'))}`;
        const [found] = await ext4.read(disk, await findRootPartition(disk), folder, [name.slice(name.lastIndexOf('/') + 1)], AbortSignal.timeout(120_000));
        return found?.content ?? null;
      } finally {
        await handle.close();
      }
    },
  };
}
