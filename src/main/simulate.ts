/** `metalflow simulate amt` and `metalflow simulate node`. */
import type { SimulateAmtOptions, SimulateNodeOptions } from '../cli/roles.js';
import { programEnvironment } from '../config/index.js';
import { issuesText } from '../contracts/primitives.js';
import { MetalflowError } from '../domain/errors.js';
import { createCommandHooks, type HookedMachine } from '../simulator/amt/command-hooks.js';
import { splitCommand } from '../simulator/amt/command-line.js';
import { createAmtControl } from '../simulator/amt/control.js';
import { FaultChange, type AmtFaults } from '../simulator/amt/faults.js';
import { startAmtFleet, type FleetMachine } from '../simulator/amt/fleet.js';
import { selfSigned } from '../simulator/amt/self-signed.js';
import { createLogger } from '../telemetry/log.js';
import { createCloser, listen, untilSignal, urlOf } from './role.js';
import { startSimulatedMachine } from './simulated.js';

const say = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);

/** The control page has no tokens: nobody else's machine may reach it. */
const CONTROL_HOST = '127.0.0.1';

/** Runs until a signal. Prints a line an endpoint, then the control page, then `ready`; later a line a power change. */
export async function simulateAmt(options: SimulateAmtOptions): Promise<void> {
  const { count, host, portBase, uuidBase, username, password, power: initialPower, json } = options;
  const stop = untilSignal();
  const log = createLogger({ level: 'info', role: 'simulate-amt' });
  const print = (event: object, text: string): void => void process.stdout.write(`${json ? JSON.stringify(event) : text}\n`);
  const command = (text: string | null, name: string): ReturnType<typeof splitCommand> | null => (text === null ? null : splitCommand(text, name));
  const faults = readFaults(options.faults);
  const hooks = createCommandHooks({ on: command(options.onCommand, '--on-command'), off: command(options.offCommand, '--off-command'), env: programEnvironment(), log });
  const certificate = options.tls ? selfSigned(host) : null;
  const closer = createCloser();
  try {
    closer.add(() => hooks.close());
    const fleet = await startAmtFleet({
      count, host, portBase, uuidBase, username, password, initialPower, faults, log, ...(certificate && { tls: certificate }),
      machine(endpoint) {
        const { number } = endpoint;
        const hooked = hooks.machine(endpoint);
        const said: FleetMachine = {
          powerOn(boot) {
            print({ endpoint: number, power: 'on', boot }, `endpoint ${number} is on, boots from ${boot}`);
            return hooked.powerOn(boot);
          },
          powerOff() {
            print({ endpoint: number, power: 'off' }, `endpoint ${number} is off`);
            return hooked.powerOff();
          },
        };
        return options.onCommand === null && options.offCommand === null ? said : { ...said, report: (): ReturnType<HookedMachine['report']> => hooked.report() };
      },
    });
    closer.add(() => fleet.close());
    for (const { number, amt } of fleet.endpoints) {
      print({ endpoint: number, amt: amt.url, machineUuid: amt.machineUuid, ...(certificate && { fingerprint: certificate.fingerprint }) }, `endpoint ${number}  ${amt.url}  ${amt.machineUuid}`);
    }
    if (certificate && !json) print({}, `certificate  ${certificate.fingerprint}`);
    if (options.controlPort !== null) {
      const control = createAmtControl({ endpoints: fleet.endpoints, log });
      closer.add(() => control.close());
      const url = `${urlOf('http', CONTROL_HOST, await listen(control, 'the control page', CONTROL_HOST, options.controlPort))}/`;
      print({ control: url }, `control page  ${url}`);
    }
    print({ ready: { pid: process.pid, endpoints: count } }, 'ready; Ctrl-C ends it');
    await stop;
  } finally {
    await closer.close();
  }
}

/** @throws MetalflowError `setting_invalid` */
function readFaults(given: Readonly<Record<string, string>>): Partial<AmtFaults> {
  const read = (text: string): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };
  const faults = FaultChange.safeParse(Object.fromEntries(Object.entries(given).map(([name, text]) => [name, read(text)])));
  if (!faults.success) throw new MetalflowError('setting_invalid', { name: '--fault', why: issuesText(faults.error) });
  return faults.data;
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
