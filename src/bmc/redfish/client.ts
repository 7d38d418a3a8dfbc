/** A Bmc that is a Redfish service. Narrow: it reads power and identity, arms one network boot, resets on and off. */
import type { Bmc, BmcCapabilities, BmcCredentials, BmcIdentity, CommandResult, UuidReading } from '../../contracts/bmc.js';
import type { BmcAddress } from '../../contracts/device.js';
import type { PowerReading, PowerSeen } from '../../domain/power.js';
import { parseUuid } from '../../domain/uuid.js';
import type { Logger } from '../../telemetry/log.js';
import { commandResult, unknown, type Outcome } from '../problem.js';
import type { Trust } from '../trust.js';
import { chooseBoot, chooseReset, type BootOverride } from './choices.js';
import type { Timeouts } from '../http-once.js';
import { createExchange, DEFAULT_TIMEOUTS } from './exchange.js';
import { createService, type Received } from './service.js';
import { ActionInfo, ComputerSystem, Manager } from './shapes.js';
import { findSystem } from './system.js';

export const REDFISH_PORT = 443;
const PLAIN_HTTP_PORT = 80;

export interface RedfishDeps {
  readonly address: BmcAddress;
  readonly credentials: BmcCredentials;
  /** The secret's name, for the texts. */
  readonly secret: string;
  readonly log: Logger;
  readonly timeouts?: Partial<Timeouts>;
  /** Whose certificate is trusted; absent means those of the authorities that Node knows. */
  readonly trust?: Trust;
}

/** Resource.PowerState (DSP0268) in the house's words. */
const POWERS: Readonly<Record<string, PowerSeen>> = { On: 'on', Off: 'off-soft', PoweringOn: 'powering-on', PoweringOff: 'powering-off', Paused: 'paused' };

const KNOWN_AUTHORITIES: Trust = { pin: null, authorities: null, oldTls: false };

/** Plain HTTP, which shows the password to the network, only where NetBox says so: by `bmc_tls` false, or by port 80. */
export const redfishSpeaksTls = ({ port, tls }: BmcAddress): boolean => tls ?? port !== PLAIN_HTTP_PORT;

function redfishOrigin(address: BmcAddress): string {
  const { host, port } = address;
  const speaksTls = redfishSpeaksTls(address);
  return `${speaksTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port ?? (speaksTls ? REDFISH_PORT : PLAIN_HTTP_PORT)}`;
}

/** Opens nothing yet: each request makes its own connection, the first one the session. */
export function createRedfishBmc(deps: RedfishDeps): Bmc {
  const { address, credentials, secret, log, trust = KNOWN_AUTHORITIES } = deps;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...deps.timeouts };
  const origin = redfishOrigin(address);
  const shown = origin.slice(origin.indexOf('//') + 2);
  const service = createService({ exchange: createExchange({ origin, timeouts, trust: redfishSpeaksTls(address) ? trust : null }), credentials, timeouts, address: shown, secret, log });
  const closed = new AbortController();
  let systemPath: string | null = null;

  /** One limit for all that a method does. */
  const methodSignal = (): AbortSignal => AbortSignal.any([closed.signal, AbortSignal.timeout(timeouts.methodMs)]);

  /** @throws MetalflowError device_invalid: several systems, and NetBox does not say which */
  async function readSystem(signal: AbortSignal): Promise<Outcome<Received<ComputerSystem>>> {
    if (systemPath === null) {
      const found = await findSystem(service, address, signal);
      if (found.kind === 'problem') return found;
      systemPath = found.value;
    }
    return service.get(systemPath, ComputerSystem, signal);
  }

  async function reset(command: 'on' | 'off'): Promise<CommandResult> {
    const signal = methodSignal();
    const read = await readSystem(signal);
    // Reading alone has done nothing to the machine.
    if (read.kind === 'problem') return commandResult({ ...read.problem, effect: 'none' });
    const action = read.value.value.Actions?.['#ComputerSystem.Reset'];
    if (!action) return refused('ComputerSystem.Reset', 'none', 'its system has no Reset action: the account may lack the privilege to see it');
    const allowed = action['ResetType@Redfish.AllowableValues'] ?? (action['@Redfish.ActionInfo'] ? await resetTypes(action['@Redfish.ActionInfo'], signal) : undefined);
    const type = chooseReset(command, allowed);
    if (type.kind === 'impossible') return refused('ComputerSystem.Reset', command, type.why);
    const answer = await service.change('POST', action.target, { ResetType: type.value }, signal);
    return answer.kind === 'ok' ? { kind: 'accepted' } : commandResult(answer.problem);
  }

  /** AllowableValues of ActionInfo (DSP0266 §7.8); undefined when it cannot be had: then the service is asked without. */
  async function resetTypes(path: string, signal: AbortSignal): Promise<string[] | undefined> {
    const info = await service.get(path, ActionInfo, signal);
    return info.kind === 'ok' ? info.value.value.Parameters.find(({ Name }) => Name === 'ResetType')?.AllowableValues : undefined;
  }

  /** Sets the override; a tag that is no longer the resource's is read again, once. */
  async function override(boot: BootOverride, etag: string | null, signal: AbortSignal): Promise<Outcome<void>> {
    const first = await service.change('PATCH', systemPath!, { Boot: boot }, signal, etag);
    if (first.kind === 'ok' || !TAG_REFUSED.includes(first.problem.details['status'] ?? '')) return first;
    const again = await readSystem(signal);
    if (again.kind === 'problem') return { kind: 'problem', problem: { ...again.problem, effect: 'none' } };
    // If-Match compares strongly (RFC 9110 §13.1.1): a weak tag never fits where the service takes that word for word.
    return service.change('PATCH', systemPath!, { Boot: boot }, signal, again.value.etag?.replace(/^W\//, '') ?? null);
  }

  return {
    address,

    async observePower(): Promise<PowerReading> {
      const read = await readSystem(methodSignal());
      if (read.kind === 'problem') return unknown(read.problem);
      const state = read.value.value.PowerState;
      const power = state === undefined ? undefined : POWERS[state];
      if (power) return { kind: 'read', power };
      return { kind: 'unknown', code: 'bmc_answer_invalid', why: state === undefined ? 'its system has no PowerState' : `PowerState ${state.slice(0, 40)} is no state that we know` };
    },

    async machineUuid(): Promise<UuidReading> {
      const read = await readSystem(methodSignal());
      if (read.kind === 'problem') return unknown(read.problem);
      const text = read.value.value.UUID ?? '';
      const uuid = parseUuid(text);
      return uuid === null ? { kind: 'unreadable', why: text === '' ? 'the UUID of its system is empty' : `the UUID of its system, ${text.slice(0, 64)}, is no machine UUID` } : { kind: 'read', uuid };
    },

    powerOn: () => reset('on'),
    powerOff: () => reset('off'),

    async bootOnceFromNetwork(): Promise<CommandResult> {
      const signal = methodSignal();
      const read = await readSystem(signal);
      if (read.kind === 'problem') return commandResult({ ...read.problem, effect: 'none' });
      const boot = chooseBoot(read.value.value.Boot, address.boot);
      if (boot.kind === 'impossible') return refused('Boot', address.boot ?? 'pxe', boot.why);
      let answer = await override(boot.value, read.value.etag, signal);
      const { BootSourceOverrideMode: mode, ...withoutMode } = boot.value;
      // Some have the property and let nobody write it.
      if (mode !== undefined && answer.kind === 'problem' && MODE_REFUSED.includes(answer.problem.details['status'] ?? '')) {
        log.debug({ bmc: shown, why: answer.problem.why }, 'the BMC refuses the boot mode: asking without it');
        const fresh = await readSystem(signal);
        answer = await override(withoutMode, fresh.kind === 'ok' ? fresh.value.etag : null, signal);
      }
      return answer.kind === 'ok' ? { kind: 'accepted' } : commandResult(answer.problem);
    },

    async identify(): Promise<BmcIdentity | null> {
      const signal = methodSignal();
      const read = await readSystem(signal);
      const root = await service.root(signal);
      if (read.kind === 'problem' || root.kind === 'problem') return null;
      const { Manufacturer: maker, Model: model, Links: links } = read.value.value;
      const managedBy = links?.ManagedBy?.[0]?.['@odata.id'];
      const manager = managedBy === undefined ? null : await service.get(managedBy, Manager, signal);
      const firmware = manager?.kind === 'ok' ? manager.value.value.FirmwareVersion : undefined;
      const versions = [firmware && `firmware ${firmware}`, root.value.RedfishVersion && `Redfish ${root.value.RedfishVersion}`];
      return { product: [maker, model].filter(Boolean).join(' ') || 'Redfish', version: versions.filter(Boolean).join(', ') || 'unknown' };
    },

    async capabilities(): Promise<BmcCapabilities | null> {
      const read = await readSystem(methodSignal());
      if (read.kind === 'problem') return null;
      const boot = chooseBoot(read.value.value.Boot, address.boot);
      return boot.kind === 'chosen' ? { bootOnceFromNetwork: true } : { bootOnceFromNetwork: false, why: boot.why };
    },

    diagnose: async () => [],

    async close() {
      closed.abort();
      await service.close();
    },
  };

  function refused(step: string, value: string, why: string): CommandResult {
    return { kind: 'refused', code: 'bmc_refused', why, details: { step, value, meaning: why } };
  }
}

/** Precondition Failed, Precondition Required. */
const TAG_REFUSED = ['412', '428'];
/** What services answer to a property that they do not let write. */
const MODE_REFUSED = ['400', '405', '409', '422', '501'];
