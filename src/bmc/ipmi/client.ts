/** A Bmc behind IPMI 2.0 over LAN, spoken by ipmitool. Narrow: power, one network boot, and who answers. */
import type { Bmc, BmcCapabilities, BmcCredentials, BmcIdentity, CommandResult, UuidReading } from '../../contracts/bmc.js';
import type { BmcAddress } from '../../contracts/device.js';
import type { PowerReading } from '../../domain/power.js';
import type { Logger } from '../../telemetry/log.js';
import { commandResult, unknown } from '../problem.js';
import { readGuid } from './guid.js';
import { createIpmitool, DEFAULT_TIMEOUTS, type Timeouts } from './ipmitool.js';
import { createProgram, type RunProgram } from './program.js';

/** SHA-256 first. Suite 3 (SHA-1) is all that older BMCs have; a site without such narrows the list. */
export const DEFAULT_CIPHER_SUITES: readonly number[] = [17, 3];

export interface IpmiDeps {
  readonly address: BmcAddress;
  readonly credentials: BmcCredentials;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
  /** METALFLOW_IPMI_CIPHER_SUITES, in order of preference. */
  readonly cipherSuites?: readonly number[];
  readonly timeouts?: Partial<Timeouts>;
  /** Another ipmitool than the one of the usual folders. */
  readonly run?: RunProgram;
}

/** Every method throws MetalflowError `bmc_tool_missing` on a worker without ipmitool. */
export function createIpmiBmc(deps: IpmiDeps): Bmc {
  const { address, log } = deps;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...deps.timeouts };
  const tool = createIpmitool({ ...deps, timeouts, run: deps.run ?? createProgram('ipmitool'), cipherSuites: deps.cipherSuites ?? DEFAULT_CIPHER_SUITES });
  const closed = new AbortController();
  /** One limit for all that a method does. */
  const methodSignal = (): AbortSignal => AbortSignal.any([closed.signal, AbortSignal.timeout(timeouts.methodMs)]);

  async function command(args: readonly string[], success: RegExp): Promise<CommandResult> {
    const answer = await tool.ask(args, 'command', (stdout) => (success.test(stdout) ? true : null), methodSignal());
    return answer.kind === 'ok' ? { kind: 'accepted' } : commandResult(answer.problem);
  }

  return {
    address,

    async observePower(): Promise<PowerReading> {
      const answer = await tool.ask(['chassis', 'power', 'status'], 'read', (stdout) => /^Chassis Power is (on|off)\s*$/m.exec(stdout)?.[1] ?? null, methodSignal());
      if (answer.kind === 'problem') return unknown(answer.problem);
      return { kind: 'read', power: answer.value === 'on' ? 'on' : 'off-soft' };
    },

    async machineUuid(): Promise<UuidReading> {
      // The bytes as they came: ipmitool's own decoding guesses the byte order from one digit.
      const answer = await tool.ask(['mc', 'guid', 'dump'], 'read', (stdout) => /^System GUID\s*:\s*([0-9a-f]{32})\s*$/im.exec(stdout)?.[1] ?? null, methodSignal());
      if (answer.kind === 'problem') return answer.problem.code === 'bmc_refused' ? { kind: 'unreadable', why: answer.problem.why } : unknown(answer.problem);
      const guid = readGuid(answer.value, address.systemUuid);
      if (guid === null) return { kind: 'unreadable', why: `the System GUID ${answer.value} is no machine UUID` };
      log.debug({ bmc: address.host, order: guid.order, by: guid.by }, 'read the System GUID');
      return { kind: 'read', uuid: guid.uuid, byteOrder: guid.order };
    },

    powerOn: () => command(['chassis', 'power', 'on'], /^Chassis Power Control: Up\/On\s*$/m),
    powerOff: () => command(['chassis', 'power', 'off'], /^Chassis Power Control: Down\/Off\s*$/m),

    /** Boot flags without `persistent` are good for one boot; a BMC forgets them 60 s later when no power command comes (IPMI 2.0 table 28-14). */
    bootOnceFromNetwork: () => command(['chassis', 'bootdev', 'pxe', 'options=efiboot'], /^Set Boot Device to pxe\s*$/m),

    async identify(): Promise<BmcIdentity | null> {
      const answer = await tool.ask(['mc', 'info'], 'read', (stdout) => (/^Firmware Revision/m.test(stdout) ? stdout : null), methodSignal());
      if (answer.kind === 'problem') return null;
      const field = (name: string): string | undefined => new RegExp(`^${name}\\s*:\\s*(\\S.*)$`, 'm').exec(answer.value)?.[1]?.trim().slice(0, 100);
      const versions = [field('Firmware Revision') && `firmware ${field('Firmware Revision')}`, field('IPMI Version') && `IPMI ${field('IPMI Version')}`];
      return { product: [field('Manufacturer Name'), field('Product Name')].filter(Boolean).join(' ') || 'IPMI', version: versions.filter(Boolean).join(', ') };
    },

    async capabilities(): Promise<BmcCapabilities | null> {
      const answer = await tool.ask(['chassis', 'bootparam', 'get', '5'], 'read', (stdout) => (/^Boot parameter data/m.test(stdout) ? true : null), methodSignal());
      if (answer.kind === 'ok') return { bootOnceFromNetwork: true };
      return answer.problem.code === 'bmc_refused' ? { bootOnceFromNetwork: false, why: `its boot options cannot be read: ${answer.problem.why}` } : null;
    },

    diagnose: async () => [],

    async close() {
      closed.abort();
    },
  };
}
