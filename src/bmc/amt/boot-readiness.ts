/** Whether an AMT can be told to boot from the network, found out before it is told: afterwards it may say yes and boot something else. */
import type { Conversation } from './conversation.js';
import { ok, type Outcome, type Problem } from '../problem.js';
import { BootCapabilitiesBody, ControlModeBody } from './shapes.js';

/** IPS_HostBasedSetupService.CurrentControlMode: 0 not provisioned, 1 client, 2 admin. */
const CONTROL_MODES = { 0: 'none', 1: 'client', 2: 'admin' } as const;
export type ControlMode = (typeof CONTROL_MODES)[keyof typeof CONTROL_MODES];

/** In words that tell the operator what to change. */
export const NO_NETWORK_BOOT = 'AMT_BootCapabilities.ForcePXEBoot is false: enable network boot in the firmware setup';
export const CLIENT_CONTROL = 'AMT is in client control mode, where a boot order needs the consent of a user at the screen: unprovision it and provision it in admin control mode';

export type BootReadiness = { readonly kind: 'ready' } | { readonly kind: 'not-ready'; readonly value: string; readonly why: string };

/** A class that this firmware does not have says nothing: AMT before 6.1 has no control modes. */
const isAbsent = ({ code }: Problem): boolean => code === 'bmc_refused';

/** null for a mode that no document names. */
export const controlModeOf = (value: number): ControlMode | null => CONTROL_MODES[value as keyof typeof CONTROL_MODES] ?? null;

export async function readBootReadiness(amt: Conversation, signal: AbortSignal): Promise<Outcome<BootReadiness>> {
  const boot = await amt.read('AMT_BootCapabilities', BootCapabilitiesBody, signal);
  if (boot.kind === 'problem' && !isAbsent(boot.problem)) return boot;
  if (boot.kind === 'ok' && !boot.value.AMT_BootCapabilities.ForcePXEBoot) return ok({ kind: 'not-ready', value: 'ForcePXEBoot false', why: NO_NETWORK_BOOT });
  const mode = await amt.read('IPS_HostBasedSetupService', ControlModeBody, signal);
  if (mode.kind === 'problem' && !isAbsent(mode.problem)) return mode;
  const client = mode.kind === 'ok' && controlModeOf(mode.value.IPS_HostBasedSetupService.CurrentControlMode) === 'client';
  return ok(client ? { kind: 'not-ready', value: 'client control mode', why: CLIENT_CONTROL } : { kind: 'ready' });
}
