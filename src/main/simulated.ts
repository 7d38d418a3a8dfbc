/** A simulated node with its AMT endpoint: the agent and its disk work plugged into the machine. */
import { join } from 'node:path';
import { runAgent } from '../agent/agent.js';
import { createExt4Files } from '../agent/ext4-files.js';
import { fileDisk } from '../agent/file-disk.js';
import { createDiskFileReader } from '../agent/read-disk-file.js';
import { startAmtSimulator, type AmtSimulator } from '../simulator/amt/simulator.js';
import { createSimulatedNode, type SimulatedNode, type SimulatedNodeOptions } from '../simulator/node/simulated-node.js';
import type { Logger } from '../telemetry/log.js';

type Wiring = Pick<SimulatedNodeOptions, 'startAgent' | 'openDisk' | 'readDiskFile'>;

/** @param tries between tries of an attestation; short in the demo, where nobody refuses for long */
export function agentWiring(log: Logger, everyMs?: number): Wiring {
  const ext4 = createExt4Files();
  return {
    startAgent(machine, api) {
      const stopping = new AbortController();
      const ended = runAgent({ api, machine, log, signal: stopping.signal, ...(everyMs !== undefined && { tries: { everyMs } }) });
      return {
        async stop() {
          stopping.abort();
          await ended;
        },
      };
    },
    openDisk: (disk) => fileDisk(disk),
    readDiskFile: createDiskFileReader({ ext4 }),
  };
}

export interface SimulatedMachineSpec {
  readonly dir: string;
  readonly systemUuid: string;
  readonly mac: string;
  readonly disks: SimulatedNodeOptions['disks'];
  readonly tftp: { readonly host: string; readonly port: number };
  /** Base URL of the boot plane. */
  readonly bootUrl: string;
  readonly agentUrl?: string;
  readonly amt: { readonly host?: string; readonly port?: number; readonly username: string; readonly password: string };
  readonly lldpFrame?: Buffer | null;
  readonly syslog?: SimulatedNodeOptions['syslog'];
  readonly attestEveryMs?: number;
  readonly log: Logger;
}

export interface SimulatedMachine {
  readonly node: SimulatedNode;
  readonly amt: AmtSimulator;
  close(): Promise<void>;
}

export async function startSimulatedMachine(spec: SimulatedMachineSpec): Promise<SimulatedMachine> {
  const { dir, systemUuid, mac, disks, tftp, bootUrl, log } = spec;
  const node = createSimulatedNode({
    dir, systemUuid, macs: [mac], disks, log, ...agentWiring(log, spec.attestEveryMs), ...(spec.agentUrl && { agentApi: spec.agentUrl }),
    firmware: { tftp, bootFile: `${mac}/ipxe.efi`, scriptUrl: `${bootUrl}/ipxe/script/${mac}/auto.ipxe` },
    ...(spec.syslog && { syslog: spec.syslog }),
    ...(spec.lldpFrame !== undefined && { lldpFrame: spec.lldpFrame }),
  });
  const amt = await startAmtSimulator({ ...spec.amt, machineUuid: systemUuid, power: node, log, journalFile: join(dir, 'amt.jsonl') });
  return {
    node,
    amt,
    async close() {
      await amt.close();
      await node.close();
    },
  };
}
