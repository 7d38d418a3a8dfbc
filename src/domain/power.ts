/** Power as the BMC reads it. Off is 6 or 8 only; sleep and hibernate are neither on nor off (field failure A5). */

/** CIM_AssociatedPowerManagementService.PowerState, the values met as a state. */
export const POWER_NAMES = {
  2: 'on',
  3: 'sleep-light',
  4: 'sleep-deep',
  6: 'off-hard',
  7: 'hibernate',
  8: 'off-soft',
} as const;

export type PowerValue = keyof typeof POWER_NAMES;
export type PowerName = (typeof POWER_NAMES)[PowerValue];

/** What Redfish's ComputerSystem.PowerState says besides On and Off (DSP0268, Resource.PowerState). None is on or off. */
export const TRANSIENT_POWERS = ['powering-on', 'powering-off'] as const;
export type TransientPower = (typeof TRANSIENT_POWERS)[number];
export type PowerSeen = PowerName | TransientPower | 'paused';

/** Why a BMC's word is missing. */
export type BmcProblemCode = 'bmc_unreachable' | 'bmc_auth_failed' | 'bmc_refused' | 'bmc_answer_invalid' | 'bmc_certificate_refused' | 'bmc_tls_failed';

/** What an observation says. `unknown` is never off; `settling` is AMT's silence for a while after a power change. */
export type PowerReading =
  | { readonly kind: 'read'; readonly power: PowerSeen }
  | { readonly kind: 'settling'; readonly why: string }
  /** `notAsked`: this worker had no turn for it, so the BMC's silence says nothing. */
  | { readonly kind: 'unknown'; readonly code: BmcProblemCode; readonly why: string; readonly notAsked?: true };

/** Nobody asked the BMC: as if it had not been looked at. */
export const wasNotAsked = (reading: { readonly kind: string; readonly notAsked?: true }): boolean => reading.notAsked === true;

/** The words of the `power` search attribute; `settling` also while the BMC says that the power is on its way. */
export const POWER_WORDS = ['on', 'off', 'sleeping', 'settling', 'unknown'] as const;
export type PowerWord = (typeof POWER_WORDS)[number];

export const readsOff = (reading: PowerReading): boolean => reading.kind === 'read' && (reading.power === 'off-hard' || reading.power === 'off-soft');
export const readsOn = (reading: PowerReading): boolean => reading.kind === 'read' && reading.power === 'on';

export function powerWord(reading: PowerReading): PowerWord {
  if (reading.kind !== 'read') return reading.kind;
  if (readsOff(reading)) return 'off';
  if ((TRANSIENT_POWERS as readonly string[]).includes(reading.power)) return 'settling';
  return readsOn(reading) ? 'on' : 'sleeping';
}

/** Seconds for which an unreachable AMT, which shares the host's NIC, is settling rather than gone. */
export const AMT_SETTLING_SECONDS = 180;
