/** What the settings of an AMT mean for a run: pure, one function a trap. The traps are those of the field (MeshCentral#3890, deployment#291, mps#1373 …). */
import type { BmcFinding } from '../../contracts/bmc.js';
import { CLIENT_CONTROL, controlModeOf, NO_NETWORK_BOOT } from './boot-readiness.js';

type About = BmcFinding['about'];
export type Finding<A extends About> = Extract<BmcFinding, { about: A }>;

/** IPS_PowerManagementService.OSPowerSavingState. null where it is not said, which is so while the machine is off. */
export const osPowerState = (value: number | undefined): 'full' | 'saving' | null => (value === 2 ? 'full' : value === 3 ? 'saving' : null);

export function versionFinding(version: string | undefined): Finding<'version'> {
  if (version === undefined) return { about: 'version', version: null, result: 'unknown', found: 'CIM_SoftwareIdentity names no AMT' };
  const major = Number.parseInt(version, 10);
  // It spells the parameter of ChangeBootOrder `source`, in lower case.
  if (major <= 5) {
    const hint = 'AMT 5 and older take the boot order in another spelling: update the firmware, or run the node as bmc_type manual';
    return { about: 'version', version, result: 'bad', found: `AMT ${version}`, hint };
  }
  return { about: 'version', version, result: 'good', found: `AMT ${version}` };
}

/** AMT_SetupAndConfigurationService: ProvisioningMode 1 admin, 4 client; ProvisioningState 2 is done. */
export function provisioningFinding({ mode, state }: { mode: number | undefined; state: number | undefined }): Finding<'provisioning'> {
  if (state !== undefined && state !== 2) {
    return { about: 'provisioning', mode: 'none', result: 'bad', found: `provisioning is not done (ProvisioningState ${state})`, hint: 'provision AMT in admin control mode' };
  }
  if (mode === 1) return { about: 'provisioning', mode: 'admin', result: 'good', found: 'provisioned for admin control mode' };
  if (mode === 4) return { about: 'provisioning', mode: 'client', result: 'warning', found: 'provisioned for client control mode', hint: 'provision AMT in admin control mode' };
  return { about: 'provisioning', mode: null, result: 'unknown', found: mode === undefined ? 'AMT does not say how it was provisioned' : `ProvisioningMode ${mode}` };
}

export function controlModeFinding(value: number): Finding<'control-mode'> {
  const mode = controlModeOf(value);
  switch (mode) {
    case 'admin':
      return { about: 'control-mode', mode, result: 'good', found: 'admin control mode' };
    case 'client':
      return { about: 'control-mode', mode, result: 'bad', found: 'client control mode', hint: CLIENT_CONTROL };
    case 'none':
      return { about: 'control-mode', mode, result: 'bad', found: 'not provisioned', hint: 'provision AMT in admin control mode' };
    case null:
      return { about: 'control-mode', mode, result: 'unknown', found: `CurrentControlMode ${value}` };
  }
}

export const bootFinding = (networkBoot: boolean): Finding<'boot-capability'> =>
  networkBoot
    ? { about: 'boot-capability', networkBoot, result: 'good', found: 'can be told to boot once from the network' }
    : { about: 'boot-capability', networkBoot, result: 'bad', found: 'cannot be told to boot from the network', hint: NO_NETWORK_BOOT };

export interface Port {
  readonly address: string | undefined;
  readonly dhcp: boolean | undefined;
  readonly sharedStatic: boolean | undefined;
  readonly sharedDynamic: boolean | undefined;
}

/** One address for two: with DHCP the ME takes it over when the machine goes off, a static one goes away with it. */
export function addressFinding({ address, dhcp, sharedStatic, sharedDynamic }: Port, hostAddresses: readonly string[]): Finding<'address'> {
  if (address === undefined || address === '0.0.0.0') return { about: 'address', address: null, dhcp: dhcp ?? null, isHosts: null, result: 'unknown', found: 'AMT does not say which address it has' };
  const known = hostAddresses.length > 0 || sharedStatic !== undefined || sharedDynamic !== undefined;
  const isHosts = known ? hostAddresses.includes(address) || (dhcp ? sharedDynamic === true : sharedStatic === true) : null;
  const common = { about: 'address' as const, address, dhcp: dhcp ?? null, isHosts };
  const words = `${address}${dhcp === undefined ? '' : dhcp ? ' by DHCP' : ', static'}`;
  if (isHosts === null) return { ...common, result: 'unknown', found: `${words}; whether the host has it too is not known` };
  if (!isHosts) return { ...common, result: 'good', found: `${words}, its own` };
  if (dhcp) return { ...common, result: 'good', found: `${words}, shared with the host` };
  return { ...common, result: 'bad', found: `${words}, and the host has the same`, hint: 'AMT is not reached while the machine is off: give AMT an address of its own, or let both use DHCP' };
}

/** AMT_EthernetPortSettings.LinkPolicy: 1 and 16 in S0 on mains and battery, 14 and 224 in every sleep state. */
export function linkFinding(policy: readonly string[] | undefined): Finding<'link-when-off'> {
  if (policy === undefined) return { about: 'link-when-off', kept: null, result: 'unknown', found: 'AMT has no LinkPolicy' };
  const kept = policy.includes('14');
  return kept
    ? { about: 'link-when-off', kept, result: 'good', found: 'keeps its link while the machine is off' }
    : {
        about: 'link-when-off', kept, result: 'bad', found: `keeps its link only while the machine is on (LinkPolicy ${policy.join(', ') || 'empty'})`,
        hint: 'choose a power policy that holds in S4 and S5 (firmware setup: ME ON in Host Sleep States)',
      };
}

export interface PowerPolicy {
  /** AMT_SystemPowerScheme.Description, e.g. `Desktop: ON in S0, ME Wake in S3, S4-5`. */
  readonly scheme: string | undefined;
  /** AMT_GeneralSettings.PowerSource: 0 mains, 1 battery. */
  readonly source: number | undefined;
  /** AMT_GeneralSettings.IdleWakeTimeout: minutes for which a woken ME stays awake. */
  readonly idleMinutes: number | undefined;
}

export function powerPolicyFinding({ scheme, source, idleMinutes }: PowerPolicy): Finding<'power-policy'> {
  const common = { about: 'power-policy' as const, policy: scheme ?? null, source: source === 0 ? ('mains' as const) : source === 1 ? ('battery' as const) : null, idleMinutes: idleMinutes ?? null };
  if (scheme === undefined) return { ...common, result: 'unknown', found: 'AMT does not say which power policy it has' };
  if (!/S0/i.test(scheme)) return { ...common, result: 'unknown', found: `${scheme}: of unknown meaning` };
  if (!/S4-?5|S5/i.test(scheme)) {
    const hint = 'AMT sleeps with the machine and cannot power it on: choose a policy that holds in S4 and S5 (firmware setup: ME ON in Host Sleep States)';
    return { ...common, result: 'bad', found: scheme, hint };
  }
  if (common.source === 'battery') return { ...common, result: 'warning', found: `${scheme}; the machine runs on its battery`, hint: 'on battery AMT may sleep with the machine: connect it to mains' };
  if (/OFF After Power Loss/i.test(scheme)) {
    return { ...common, result: 'warning', found: scheme, hint: 'after a power loss AMT answers only once somebody has pressed the button: choose a policy without it' };
  }
  const wakes = /ME Wake/i.test(scheme) && idleMinutes !== undefined;
  return { ...common, result: 'good', found: wakes ? `${scheme}; asleep after ${idleMinutes} min, the next packet wakes it` : scheme };
}

/** Seconds; TLS and the logs of AMT go by that clock. */
const SKEW_ALLOWED = 300;

export function clockFinding(skewSeconds: number): Finding<'clock'> {
  const found = skewSeconds === 0 ? 'goes right' : `${Math.abs(skewSeconds)} s ${skewSeconds > 0 ? 'ahead' : 'behind'}`;
  if (Math.abs(skewSeconds) <= SKEW_ALLOWED) return { about: 'clock', skewSeconds, result: 'good', found };
  return { about: 'clock', skewSeconds, result: 'warning', found, hint: 'set the clock of AMT: certificates and its logs go by it' };
}

/** Never says anything of off: a machine in Modern Standby reads on. */
export function osPowerFinding(value: number | undefined): Finding<'os-power-saving'> {
  const state = osPowerState(value);
  if (state === 'full') return { about: 'os-power-saving', state, result: 'good', found: 'the operating system is awake' };
  if (state === 'saving') {
    const hint = 'a power-on does not wake it (Modern Standby): go by off and on';
    return { about: 'os-power-saving', state, result: 'warning', found: 'the operating system sleeps while the power reads on', hint };
  }
  return { about: 'os-power-saving', state, result: 'good', found: value === undefined ? 'not said, as while the machine is off' : `OSPowerSavingState ${value}` };
}
