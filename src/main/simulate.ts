/** `metalflow simulate amt` and `metalflow simulate node`. */
import type { SimulateAmtOptions, SimulateNodeOptions } from '../cli/roles.js';
import { startAmtSimulator } from '../simulator/amt/simulator.js';
import { createLogger } from '../telemetry/log.js';
import { untilSignal } from './role.js';
import { startSimulatedMachine } from './simulated.js';

const say = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);

export async function simulateAmt(options: SimulateAmtOptions): Promise<void> {
  const log = createLogger({ level: 'info', role: 'simulate-amt' });
  const power = { powerOn: (boot: string) => say({ power: 'on', boot }), powerOff: () => say({ power: 'off' }) };
  const amt = await startAmtSimulator({ ...options, initialPower: 'on', power, log });
  say({ amt: amt.url, machineUuid: options.machineUuid });
  await untilSignal();
  await amt.close();
}

export async function simulateNode(options: SimulateNodeOptions): Promise<void> {
  const log = createLogger({ level: 'info', role: 'simulate-node' });
  const { dir, mac, diskBytes, diskSerial, tftp, bootUrl, agentUrl, amt } = options;
  const machine = await startSimulatedMachine({
    dir, mac, systemUuid: amt.machineUuid, tftp, bootUrl, amt, log, ...(agentUrl && { agentUrl }),
    disks: [{ name: 'disk0', serial: diskSerial, model: 'SIMULATED', sizeBytes: diskBytes, bus: 'virtio' }],
  });
  machine.node.events.on('state', (state) => say({ node: state }));
  say({ amt: machine.amt.url, machineUuid: amt.machineUuid, mac });
  await untilSignal();
  await machine.close();
}
