/** A Bmc that is an Intel AMT. Narrow: it reads power and identity, arms one network boot, sends on (2) and off (8). */
import type { Bmc, BmcCapabilities, BmcCredentials, BmcIdentity, CommandResult, UuidReading } from '../../contracts/bmc.js';
import type { BmcAddress } from '../../contracts/device.js';
import { POWER_NAMES, type PowerReading, type PowerValue } from '../../domain/power.js';
import { uuidFromSmbiosHex } from '../../domain/uuid.js';
import type { Logger } from '../../telemetry/log.js';
import type { Trust } from '../trust.js';
import { readBootReadiness } from './boot-readiness.js';
import { clearedBootSettings } from './boot-settings.js';
import { createConversation } from './conversation.js';
import type { Timeouts } from '../http-once.js';
import { createConnection, DEFAULT_TIMEOUTS, type Connection } from './connection.js';
import { createDigestSession } from './digest.js';
import { diagnose } from './diagnosis.js';
import {
  changeBootOrderEnvelope, identifyEnvelope, putEnvelope, requestPowerStateChangeEnvelope, setBootConfigRoleEnvelope, type DrawMessageId,
} from './envelope.js';
import { osPowerState } from './findings.js';
import { FORCE_PXE_BOOT, POWER_REQUEST } from './names.js';
import { commandResult, problem, unknown, type Outcome } from '../problem.js';
import { BootSettingsBody, IdentifyBody, OsPowerBody, PlatformGuidBody, PowerStateBody, PutBody, SoftwareItem } from './shapes.js';
import { createTransport } from './transport.js';

/** Plain HTTP, and HTTP over TLS. */
export const AMT_PORT = 16_992;
export const AMT_TLS_PORT = 16_993;

export interface AmtDeps {
  readonly address: BmcAddress;
  readonly credentials: BmcCredentials;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
  readonly timeouts?: Partial<Timeouts>;
  /** Whose certificate it must show; null or absent for plain HTTP. */
  readonly trust?: Trust | null;
  /** Another way to the BMC. */
  readonly connection?: Connection;
  readonly drawMessageId?: DrawMessageId;
  readonly now?: () => Date;
}

const hostAndPort = ({ host, port }: BmcAddress, isTls: boolean): string => `${host.includes(':') ? `[${host}]` : host}:${port ?? (isTls ? AMT_TLS_PORT : AMT_PORT)}`;

const command = (outcome: Outcome<unknown>): CommandResult => (outcome.kind === 'ok' ? { kind: 'accepted' } : commandResult(outcome.problem));

/** Opens nothing yet: each request makes its own connection. */
export function createAmtBmc(deps: AmtDeps): Bmc {
  const { address, log, trust = null, drawMessageId, now = (): Date => new Date() } = deps;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...deps.timeouts };
  const where = hostAndPort(address, trust !== null);
  const transport = createTransport({
    connection: deps.connection ?? createConnection({ origin: `${trust ? 'https' : 'http'}://${where}`, timeouts, trust }),
    digest: createDigestSession({ credentials: deps.credentials }),
    timeouts,
    isTls: trust !== null,
    address: where,
    secret: deps.secret,
    log,
    now,
  });
  const amt = createConversation({ transport, timeouts, address: where, log, ...(drawMessageId && { drawMessageId }) });

  const requestPower = (state: number): Promise<CommandResult> =>
    amt.within(async (signal) => command(await amt.invoke('RequestPowerStateChange', requestPowerStateChangeEnvelope(state, amt.drawMessageId()), signal)));

  /** Identify, which needs no class; CIM_SoftwareIdentity where its words hold no version. */
  async function identify(signal: AbortSignal): Promise<BmcIdentity | null> {
    const answer = await amt.ask('Identify', identifyEnvelope(), 'read', IdentifyBody, signal);
    if (answer.kind === 'problem') return null;
    const { ProductVendor: vendor, ProductVersion: said } = answer.value.IdentifyResponse;
    const product = `${vendor} AMT`.trim();
    const version = said.replace(/^AMT\s*/i, '');
    if (/^\d/.test(version)) return { product, version };
    const software = await amt.readAll('CIM_SoftwareIdentity', SoftwareItem, signal);
    const found = software.kind === 'ok' ? software.value.find(({ InstanceID: id }) => id === 'AMT')?.VersionString : undefined;
    return { product, version: found ?? version };
  }

  return {
    address,

    observePower: () =>
      amt.within(async (signal): Promise<PowerReading> => {
        const answer = await amt.read('CIM_AssociatedPowerManagementService', PowerStateBody, signal);
        if (answer.kind === 'problem') return unknown(answer.problem);
        const value = answer.value.CIM_AssociatedPowerManagementService.PowerState;
        const power = POWER_NAMES[value as PowerValue] as (typeof POWER_NAMES)[PowerValue] | undefined;
        return power ? { kind: 'read', power } : { kind: 'unknown', code: 'bmc_answer_invalid', why: `PowerState ${value} is no state of a machine` };
      }),

    machineUuid: () =>
      amt.within(async (signal): Promise<UuidReading> => {
        const answer = await amt.read('CIM_ComputerSystemPackage', PlatformGuidBody, signal);
        if (answer.kind === 'problem') {
          const { details, why } = answer.problem;
          return details['value'] === 'DestinationUnreachable' ? { kind: 'unreadable', why } : unknown(answer.problem);
        }
        const found = answer.value.CIM_ComputerSystemPackage;
        const guid = (typeof found === 'string' ? undefined : found.PlatformGUID) ?? '';
        const uuid = uuidFromSmbiosHex(guid);
        return uuid === null ? { kind: 'unreadable', why: guid === '' ? 'PlatformGUID is empty' : `PlatformGUID ${guid.slice(0, 64)} is no machine UUID` } : { kind: 'read', uuid };
      }),

    powerOn: () => requestPower(POWER_REQUEST.on),
    powerOff: () => requestPower(POWER_REQUEST.off),

    /**
     * Intel's order, without its last step, the power request. May be asked again whatever came of it: it begins by
     * clearing, and AMT takes no second source before that. What would be accepted and then not be done is refused first.
     */
    bootOnceFromNetwork: () =>
      amt.within(async (signal): Promise<CommandResult> => {
        const readiness = await readBootReadiness(amt, signal);
        if (readiness.kind === 'problem') return commandResult({ ...readiness.problem, effect: 'none' });
        const ready = readiness.value;
        if (ready.kind === 'not-ready') return command(problem('bmc_refused', ready.why, 'none', { step: 'one-time network boot', value: ready.value, meaning: ready.why }));
        const settings = await amt.read('AMT_BootSettingData', BootSettingsBody, signal);
        if (settings.kind === 'problem') return commandResult({ ...settings.problem, effect: 'none' });
        const fields = clearedBootSettings(settings.value.AMT_BootSettingData);
        const steps: (() => Promise<Outcome<unknown>>)[] = [
          () => amt.invoke('ChangeBootOrder', changeBootOrderEnvelope(null, amt.drawMessageId()), signal),
          () => amt.ask('Put AMT_BootSettingData', putEnvelope('AMT_BootSettingData', fields, amt.drawMessageId()), 'command', PutBody, signal),
          () => amt.invoke('SetBootConfigRole', setBootConfigRoleEnvelope(amt.drawMessageId()), signal),
          () => amt.invoke('ChangeBootOrder', changeBootOrderEnvelope(FORCE_PXE_BOOT, amt.drawMessageId()), signal),
        ];
        for (const [done, step] of steps.entries()) {
          const outcome = await step();
          if (outcome.kind === 'ok') continue;
          // After the first change "nothing happened" would be a lie, even if this step never left.
          const half = done > 0 && outcome.problem.code === 'bmc_unreachable';
          return commandResult(half ? { ...outcome.problem, effect: 'possible' } : outcome.problem);
        }
        return { kind: 'accepted' };
      }),

    identify: () => amt.within(identify),

    capabilities: () =>
      amt.within(async (signal): Promise<BmcCapabilities | null> => {
        const readiness = await readBootReadiness(amt, signal);
        if (readiness.kind === 'problem') return null;
        const os = await amt.read('IPS_PowerManagementService', OsPowerBody, signal);
        const osPowerSaving = os.kind === 'ok' ? osPowerState(os.value.IPS_PowerManagementService.OSPowerSavingState) : null;
        return {
          ...(readiness.value.kind === 'ready' ? { bootOnceFromNetwork: true } : { bootOnceFromNetwork: false, why: readiness.value.why }),
          ...(osPowerSaving !== null && { osPowerSaving }),
        };
      }),

    diagnose: (host = { addresses: [] }) => diagnose({ amt, now, hostAddresses: host.addresses }),

    close: async () => amt.close(),
  };
}
