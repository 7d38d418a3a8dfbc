/** Looks through an AMT for what keeps a run from going through it. Reads only; what cannot be read is said so. */
import type { BmcFinding } from '../../contracts/bmc.js';
import type { Conversation } from './conversation.js';
import { getTimeEnvelope } from './envelope.js';
import {
  addressFinding, bootFinding, clockFinding, controlModeFinding, linkFinding, osPowerFinding, powerPolicyFinding, provisioningFinding, versionFinding,
} from './findings.js';
import { WIRED_PORT } from './names.js';
import type { Outcome, Problem } from '../problem.js';
import {
  BootCapabilitiesBody, ControlModeBody, ElementSettingItem, GeneralSettingsBody, OsPowerBody, PortBody, PowerSchemeItem, ProvisioningBody, SoftwareItem, TimeBody,
} from './shapes.js';

export interface DiagnosisDeps {
  readonly amt: Conversation;
  readonly now: () => Date;
  readonly hostAddresses: readonly string[];
}

/** A finding's facts when nothing could be read. */
const NOTHING = {
  version: { about: 'version', version: null },
  provisioning: { about: 'provisioning', mode: null },
  'control-mode': { about: 'control-mode', mode: null },
  'boot-capability': { about: 'boot-capability', networkBoot: null },
  address: { about: 'address', address: null, dhcp: null, isHosts: null },
  'link-when-off': { about: 'link-when-off', kept: null },
  'power-policy': { about: 'power-policy', policy: null, source: null, idleMinutes: null },
  clock: { about: 'clock', skewSeconds: null },
  'os-power-saving': { about: 'os-power-saving', state: null },
} as const satisfies { readonly [A in BmcFinding['about']]: Omit<Extract<BmcFinding, { about: A }>, 'result' | 'found'> };

const valueOf = <T>(outcome: Outcome<T>): T | undefined => (outcome.kind === 'ok' ? outcome.value : undefined);

/** Each look has the limit of a method of its own. After a BMC that does not answer, or not to us, the rest is not asked. */
export async function diagnose({ amt, now, hostAddresses }: DiagnosisDeps): Promise<BmcFinding[]> {
  const findings: BmcFinding[] = [];
  let over: Problem | null = null;

  async function look<T>(read: (signal: AbortSignal) => Promise<Outcome<T>>, found: { readonly [A in BmcFinding['about']]?: (value: T) => BmcFinding }): Promise<void> {
    const outcome: Outcome<T> = over ? { kind: 'problem', problem: over } : await amt.within(read);
    if (outcome.kind === 'problem' && outcome.problem.code !== 'bmc_refused' && outcome.problem.code !== 'bmc_answer_invalid') over = outcome.problem;
    for (const [about, judged] of Object.entries(found)) {
      const nothing = { ...NOTHING[about as BmcFinding['about']], result: 'unknown' } as const;
      findings.push(outcome.kind === 'ok' ? judged(outcome.value) : ({ ...nothing, found: outcome.problem.why } as BmcFinding));
    }
  }

  await look((signal) => amt.readAll('CIM_SoftwareIdentity', SoftwareItem, signal), {
    version: (items) => versionFinding(items.find(({ InstanceID: id }) => id === 'AMT')?.VersionString),
  });
  await look((signal) => amt.read('AMT_SetupAndConfigurationService', ProvisioningBody, signal), {
    provisioning: ({ AMT_SetupAndConfigurationService: setup }) => provisioningFinding({ mode: setup.ProvisioningMode, state: setup.ProvisioningState }),
  });
  await look((signal) => amt.read('IPS_HostBasedSetupService', ControlModeBody, signal), {
    'control-mode': ({ IPS_HostBasedSetupService: setup }) => controlModeFinding(setup.CurrentControlMode),
  });
  await look((signal) => amt.read('AMT_BootCapabilities', BootCapabilitiesBody, signal), {
    'boot-capability': ({ AMT_BootCapabilities: boot }) => bootFinding(boot.ForcePXEBoot),
  });
  await look((signal) => amt.read('AMT_EthernetPortSettings', PortBody, signal, { InstanceID: WIRED_PORT }), {
    address: ({ AMT_EthernetPortSettings: port }) =>
      addressFinding({ address: port.IPAddress, dhcp: port.DHCPEnabled, sharedStatic: port.SharedStaticIp, sharedDynamic: port.SharedDynamicIP }, hostAddresses),
    'link-when-off': ({ AMT_EthernetPortSettings: port }) => linkFinding(port.LinkPolicy),
  });
  await look((signal) => readPowerPolicy(amt, signal), { 'power-policy': powerPolicyFinding });
  await look((signal) => amt.ask('GetLowAccuracyTimeSynch', getTimeEnvelope(amt.drawMessageId()), 'read', TimeBody, signal), {
    clock: ({ GetLowAccuracyTimeSynch_OUTPUT: time }) =>
      time.ReturnValue === 0 && time.Ta0 !== undefined
        ? clockFinding(time.Ta0 - Math.floor(now().getTime() / 1000))
        : { ...NOTHING.clock, result: 'unknown', found: `AMT does not say what time it is (ReturnValue ${time.ReturnValue})` },
  });
  await look((signal) => amt.read('IPS_PowerManagementService', OsPowerBody, signal), {
    'os-power-saving': ({ IPS_PowerManagementService: power }) => osPowerFinding(power.OSPowerSavingState),
  });
  return findings;
}

/** Which scheme counts is said by an association; the scheme itself only by its name. */
async function readPowerPolicy(amt: Conversation, signal: AbortSignal): Promise<Outcome<Parameters<typeof powerPolicyFinding>[0]>> {
  const general = await amt.read('AMT_GeneralSettings', GeneralSettingsBody, signal);
  if (general.kind === 'problem') return general;
  const schemes = valueOf(await amt.readAll('AMT_SystemPowerScheme', PowerSchemeItem, signal)) ?? [];
  const settings = valueOf(await amt.readAll('CIM_ElementSettingData', ElementSettingItem, signal)) ?? [];
  const current = settings.flatMap(({ IsCurrent: is, SettingData: data }) => {
    const set = data?.ReferenceParameters?.SelectorSet;
    return is === '1' && typeof set === 'object' ? (set.Selector ?? []) : [];
  });
  const scheme = schemes.find(({ InstanceID: id }) => current.includes(id));
  const { PowerSource: source, IdleWakeTimeout: idleMinutes } = general.value.AMT_GeneralSettings;
  return { kind: 'ok', value: { scheme: scheme?.Description ?? scheme?.ElementName, source, idleMinutes } };
}
