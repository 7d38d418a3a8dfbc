/** A simulated AMT, what its machine was told, and Bmc objects that talk to it. */
import { createAmtBmc } from '../../src/bmc/amt/client.js';
import type { Timeouts } from '../../src/bmc/http-once.js';
import type { Trust } from '../../src/bmc/trust.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { startAmtSimulator, type AmtSimulator, type AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { silentLogger, type Logger } from '../../src/telemetry/log.js';
import { until } from './until.js';

export const MACHINE_UUID = '4c4c4544-0042-3510-8052-b4c04f564433';
/** Enough for any step on any machine: a test that wants a limit to run out says which. */
export const ROOMY: Timeouts = { connectMs: 100_000, requestMs: 100_000, methodMs: 200_000, tries: 3, pauseMs: 5 };
export const CREDENTIALS = { username: 'admin', password: 'P@ssw0rd1' };

export interface AmtBench {
  readonly amt: AmtSimulator;
  /** `on network`, `on disk`, `off`, in order. */
  readonly machine: string[];
  open(options?: { password?: string; timeouts?: Partial<Timeouts>; log?: Logger; trust?: Trust | null; now?: () => Date }): Bmc;
  close(): Promise<void>;
}

export async function startAmtBench(options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> {
  const machine: string[] = [];
  const amt = await startAmtSimulator({
    machineUuid: MACHINE_UUID,
    power: { powerOn: (boot) => void machine.push(`on ${boot}`), powerOff: () => void machine.push('off') },
    log: silentLogger(),
    ...options,
  });
  const opened: Bmc[] = [];
  return {
    amt,
    machine,
    open({ password = CREDENTIALS.password, timeouts, log = silentLogger(), trust = null, now } = {}) {
      const bmc = createAmtBmc({
        address: { type: 'amt', host: amt.host, port: amt.port },
        credentials: { ...CREDENTIALS, password },
        secret: 'bmc-amt',
        log,
        timeouts: { ...ROOMY, ...timeouts },
        trust,
        ...(now && { now }),
      });
      opened.push(bmc);
      return bmc;
    },
    async close() {
      await Promise.all(opened.map((bmc) => bmc.close()));
      await amt.close();
    },
  };
}

const tcpSockets = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
/** Those that other test files left in this worker. */
const before = tcpSockets();

/** Resolves when no TCP socket of this test file is open. @throws when some stay */
export async function noSocketsLeft(): Promise<void> {
  await until('no socket is left behind', () => tcpSockets() <= before);
}
