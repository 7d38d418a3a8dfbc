/** A Bmc that is an Intel AMT. Narrow: it reads power and identity, arms one network boot, sends on (2) and off (8). */
import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Bmc, BmcCredentials, BmcIdentity, CommandResult, UuidReading } from '../../contracts/bmc.js';
import type { BmcAddress } from '../../contracts/device.js';
import { POWER_NAMES, type PowerReading, type PowerValue } from '../../domain/power.js';
import { uuidFromSmbiosHex } from '../../domain/uuid.js';
import type { Logger } from '../../telemetry/log.js';
import { readAnswer } from './answer.js';
import { clearedBootSettings } from './boot-settings.js';
import { createConnection, DEFAULT_TIMEOUTS, type Connection, type Timeouts } from './connection.js';
import { createDigestSession } from './digest.js';
import {
  changeBootOrderEnvelope, getEnvelope, identifyEnvelope, putEnvelope, requestPowerStateChangeEnvelope, setBootConfigRoleEnvelope, type DrawMessageId,
} from './envelope.js';
import { FORCE_PXE_BOOT, POWER_REQUEST, type ResourceName } from './names.js';
import { commandResult, ok, problem, type Outcome, type Problem } from './problem.js';
import { returnValueRow, type MethodName } from './return-values.js';
import { BootCapabilitiesBody, BootSettingsBody, ControlModeBody, IdentifyBody, methodBody, PlatformGuidBody, PowerStateBody, PutBody } from './shapes.js';
import { createTransport } from './transport.js';

export const AMT_PORT = 16_992;

export interface AmtDeps {
  readonly address: BmcAddress;
  readonly credentials: BmcCredentials;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
  readonly timeouts?: Partial<Timeouts>;
  /** Another way to the BMC than plain HTTP. */
  readonly connection?: Connection;
  readonly drawMessageId?: DrawMessageId;
}

/** IPS_HostBasedSetupService.CurrentControlMode. */
const CLIENT_CONTROL_MODE = 1;

const hostAndPort = ({ host, port }: BmcAddress): string => `${host.includes(':') ? `[${host}]` : host}:${port ?? AMT_PORT}`;

/** Opens nothing yet: each request makes its own connection. */
export function createAmtBmc(deps: AmtDeps): Bmc {
  const { address, log } = deps;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...deps.timeouts };
  const drawMessageId = deps.drawMessageId ?? ((): string => `uuid:${randomUUID()}`);
  const transport = createTransport({
    connection: deps.connection ?? createConnection({ origin: `http://${hostAndPort(address)}`, timeouts }),
    digest: createDigestSession({ credentials: deps.credentials }),
    timeouts,
    address: hostAndPort(address),
    secret: deps.secret,
    log,
  });
  const closed = new AbortController();

  /** One limit for all that a method does. */
  const methodSignal = (): AbortSignal => AbortSignal.any([closed.signal, AbortSignal.timeout(timeouts.methodMs)]);

  async function ask<T>(step: string, envelope: string, kind: 'read' | 'command', shape: z.ZodType<T>, signal: AbortSignal): Promise<Outcome<T>> {
    const answer = await transport.post(envelope, kind, signal);
    const outcome = answer.kind === 'ok' ? readAnswer(answer.value, step, shape) : answer;
    log.debug({ bmc: hostAndPort(address), step, ...(outcome.kind === 'problem' && { code: outcome.problem.code, why: outcome.problem.why }) }, 'asked the BMC');
    return outcome;
  }

  const read = <T>(resource: ResourceName, shape: z.ZodType<T>, signal = methodSignal()): Promise<Outcome<T>> =>
    ask(`Get ${resource}`, getEnvelope(resource, drawMessageId()), 'read', shape, signal);

  /** One method call; a ReturnValue other than a yes is a problem. */
  async function invoke(method: MethodName, envelope: string, signal: AbortSignal): Promise<Outcome<void>> {
    const answer = await ask(method, envelope, 'command', methodBody(method), signal);
    if (answer.kind === 'problem') return answer;
    const { kind, meaning } = returnValueRow(method, answer.value);
    if (kind === 'accepted') return ok(undefined);
    const value = String(answer.value);
    return problem('bmc_refused', `${method}: ReturnValue ${value} (${meaning})`, kind === 'unknown' ? 'possible' : 'none', { step: method, value, meaning });
  }

  const command = (outcome: Outcome<unknown>): CommandResult => (outcome.kind === 'ok' ? { kind: 'accepted' } : commandResult(outcome.problem));

  const requestPower = async (state: number): Promise<CommandResult> =>
    command(await invoke('RequestPowerStateChange', requestPowerStateChangeEnvelope(state, drawMessageId()), methodSignal()));

  return {
    address,

    async observePower(): Promise<PowerReading> {
      const answer = await read('CIM_AssociatedPowerManagementService', PowerStateBody);
      if (answer.kind === 'problem') return unknown(answer.problem);
      const value = answer.value.CIM_AssociatedPowerManagementService.PowerState;
      const power = POWER_NAMES[value as PowerValue] as (typeof POWER_NAMES)[PowerValue] | undefined;
      return power ? { kind: 'read', power } : { kind: 'unknown', code: 'bmc_answer_invalid', why: `PowerState ${value} is no state of a machine` };
    },

    async machineUuid(): Promise<UuidReading> {
      const answer = await read('CIM_ComputerSystemPackage', PlatformGuidBody);
      if (answer.kind === 'problem') {
        const { details, why } = answer.problem;
        return details['value'] === 'DestinationUnreachable' ? { kind: 'unreadable', why } : unknown(answer.problem);
      }
      const found = answer.value.CIM_ComputerSystemPackage;
      const guid = (typeof found === 'string' ? undefined : found.PlatformGUID) ?? '';
      const uuid = uuidFromSmbiosHex(guid);
      return uuid === null ? { kind: 'unreadable', why: guid === '' ? 'PlatformGUID is empty' : `PlatformGUID ${guid.slice(0, 64)} is no machine UUID` } : { kind: 'read', uuid };
    },

    powerOn: () => requestPower(POWER_REQUEST.on),
    powerOff: () => requestPower(POWER_REQUEST.off),

    /**
     * Intel's order, without its last step, the power request. May be asked again whatever came of it: it begins by
     * clearing, and AMT takes no second source before that.
     */
    async bootOnceFromNetwork(): Promise<CommandResult> {
      const signal = methodSignal();
      const settings = await read('AMT_BootSettingData', BootSettingsBody, signal);
      if (settings.kind === 'problem') return commandResult({ ...settings.problem, effect: 'none' });
      const fields = clearedBootSettings(settings.value.AMT_BootSettingData);
      const steps: (() => Promise<Outcome<unknown>>)[] = [
        () => invoke('ChangeBootOrder', changeBootOrderEnvelope(null, drawMessageId()), signal),
        () => ask('Put AMT_BootSettingData', putEnvelope('AMT_BootSettingData', fields, drawMessageId()), 'command', PutBody, signal),
        () => invoke('SetBootConfigRole', setBootConfigRoleEnvelope(drawMessageId()), signal),
        () => invoke('ChangeBootOrder', changeBootOrderEnvelope(FORCE_PXE_BOOT, drawMessageId()), signal),
      ];
      for (const [done, step] of steps.entries()) {
        const outcome = await step();
        if (outcome.kind === 'ok') continue;
        // After the first change "nothing happened" would be a lie, even if this step never left.
        const half = done > 0 && outcome.problem.code === 'bmc_unreachable';
        return commandResult(half ? { ...outcome.problem, effect: 'possible' } : outcome.problem);
      }
      return { kind: 'accepted' };
    },

    async identify(): Promise<BmcIdentity | null> {
      const answer = await ask('Identify', identifyEnvelope(), 'read', IdentifyBody, methodSignal());
      if (answer.kind === 'problem') return null;
      const { ProductVendor: vendor, ProductVersion: version } = answer.value.IdentifyResponse;
      return { product: `${vendor} AMT`.trim(), version: version.replace(/^AMT\s*/i, '') };
    },

    async capabilities() {
      const signal = methodSignal();
      const boot = await read('AMT_BootCapabilities', BootCapabilitiesBody, signal);
      if (boot.kind === 'problem') return null;
      if (!boot.value.AMT_BootCapabilities.ForcePXEBoot) return { bootOnceFromNetwork: false, why: 'AMT_BootCapabilities.ForcePXEBoot is false: enable network boot in the firmware' };
      // Before AMT 6.1 there is no such class and no client control mode.
      const mode = await read('IPS_HostBasedSetupService', ControlModeBody, signal);
      const client = mode.kind === 'ok' && mode.value.IPS_HostBasedSetupService.CurrentControlMode === CLIENT_CONTROL_MODE;
      return client ? { bootOnceFromNetwork: false, why: 'AMT is in client control mode, where a boot order needs user consent: provision it in admin control mode' } : { bootOnceFromNetwork: true };
    },

    diagnose: async () => [],

    async close() {
      closed.abort();
    },
  };
}

const unknown = ({ code, why }: Problem): { kind: 'unknown'; code: Problem['code']; why: string } => ({ kind: 'unknown', code, why });
