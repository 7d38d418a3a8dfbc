/** What to ask of a system, given what its service says it allows. Pure. */
import type { BmcAddress } from '../../contracts/device.js';
import type { Boot } from './shapes.js';

export type Choice<T> = { readonly kind: 'chosen'; readonly value: T } | { readonly kind: 'impossible'; readonly why: string };

const chosen = <T>(value: T): Choice<T> => ({ kind: 'chosen', value });
const impossible = (why: string): Choice<never> => ({ kind: 'impossible', why });

/** A service that does not say what it allows is simply asked. */
const allows = (allowed: readonly string[] | undefined, value: string): boolean => allowed === undefined || allowed.includes(value);
const listed = (allowed: readonly string[] | undefined): string => allowed?.join(', ') || 'none';

/** By preference. Off is never graceful: that would be a request to the operating system, which may not listen. */
const RESET_TYPES = { on: ['On', 'ForceOn'], off: ['ForceOff'] } as const;

/** @param allowed AllowableValues of ResetType; undefined when the service does not say */
export function chooseReset(command: 'on' | 'off', allowed: readonly string[] | undefined): Choice<string> {
  const fitting = RESET_TYPES[command].find((type) => allows(allowed, type));
  return fitting === undefined ? impossible(`it allows no ResetType ${RESET_TYPES[command].join(' or ')}; there are: ${listed(allowed)}`) : chosen(fitting);
}

export interface BootOverride {
  readonly BootSourceOverrideEnabled: 'Once';
  readonly BootSourceOverrideTarget: 'Pxe' | 'UefiHttp';
  readonly BootSourceOverrideMode?: 'UEFI';
}

/** One boot from the network; with UEFI named where the service has the property, so that a node left in legacy mode comes up as its image needs it. */
export function chooseBoot(boot: Boot | undefined, wanted: BmcAddress['boot'] = 'pxe'): Choice<BootOverride> {
  if (!boot) return impossible('its system has no Boot property: the boot device cannot be chosen through it');
  const target = wanted === 'uefi-http' ? 'UefiHttp' : 'Pxe';
  const targets = boot['BootSourceOverrideTarget@Redfish.AllowableValues'];
  if (!allows(targets, target)) {
    const toDo = target === 'Pxe' ? 'enable network boot in the firmware' : 'enable HTTP boot in the firmware, or take bmc_boot out of the config context for PXE';
    return impossible(`it allows no boot target ${target} (there are: ${listed(targets)}): ${toDo}`);
  }
  // Continuous would bring the installed node back into the netboot system at every boot.
  const enabled = boot['BootSourceOverrideEnabled@Redfish.AllowableValues'];
  if (!allows(enabled, 'Once')) return impossible(`it allows no boot override for one boot only; there are: ${listed(enabled)}`);
  const modes = boot['BootSourceOverrideMode@Redfish.AllowableValues'];
  const namesMode = modes?.includes('UEFI') ?? boot.BootSourceOverrideMode !== undefined;
  return chosen({ BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: target, ...(namesMode && { BootSourceOverrideMode: 'UEFI' }) });
}
