/** Many simulated AMTs in one process, on consecutive ports, each with a machine UUID of its own. */
import { MetalflowError } from '../../domain/errors.js';
import { parseUuid } from '../../domain/uuid.js';
import type { HookReport } from './command-hooks.js';
import type { SimulatedMachine } from './power-state.js';
import { startAmtSimulator, type AmtSimulator, type AmtSimulatorOptions } from './simulator.js';

export interface AmtEndpoint {
  /** From 0. */
  readonly number: number;
  readonly amt: AmtSimulator;
  /** What its power commands came to; null without any. */
  readonly hook: () => HookReport | null;
}

export interface AmtFleet {
  readonly endpoints: readonly AmtEndpoint[];
  close(): Promise<void>;
}

export interface FleetMachine extends SimulatedMachine {
  report?(): HookReport;
}

export interface AmtFleetOptions extends Omit<AmtSimulatorOptions, 'port' | 'machineUuid' | 'power' | 'journalFile'> {
  readonly count: number;
  /** Port of endpoint 0; 0 takes free ones. */
  readonly portBase: number;
  /** Machine UUID of endpoint 0; the others count up from it. */
  readonly uuidBase: string;
  readonly machine: (endpoint: { readonly number: number; readonly machineUuid: string; readonly port: () => number }) => FleetMachine;
}

/** The last group of a UUID, as a number, has room for this much. */
const GROUP = 2 ** 48;

/** @throws MetalflowError `setting_invalid` when the UUIDs run out */
export function uuidAfter(base: string, steps: number): string {
  const next = Number.parseInt(base.slice(24), 16) + steps;
  const uuid = next < GROUP ? parseUuid(`${base.slice(0, 24)}${next.toString(16).padStart(12, '0')}`) : null;
  if (uuid === null) throw new MetalflowError('setting_invalid', { name: '--uuid-base', why: `endpoint ${steps} would have no machine UUID` });
  return uuid;
}

/** All or none. @throws MetalflowError `port_in_use`, `setting_invalid` */
export async function startAmtFleet({ count, portBase, uuidBase, machine, ...options }: AmtFleetOptions): Promise<AmtFleet> {
  if (portBase > 0 && portBase + count - 1 > 65_535) throw new MetalflowError('setting_invalid', { name: '--port-base', why: `${count} ports from ${portBase} end above 65535` });
  uuidAfter(uuidBase, count - 1);
  const endpoints: AmtEndpoint[] = [];
  const close = async (): Promise<void> => void (await Promise.all(endpoints.map(({ amt }) => amt.close())));
  try {
    for (let number = 0; number < count; number += 1) {
      const machineUuid = uuidAfter(uuidBase, number);
      let port = 0;
      const power = machine({ number, machineUuid, port: () => port });
      const amt = await startAmtSimulator({ ...options, machineUuid, power, port: portBase === 0 ? 0 : portBase + number });
      ({ port } = amt);
      endpoints.push({ number, amt, hook: () => power.report?.() ?? null });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { endpoints, close };
}
