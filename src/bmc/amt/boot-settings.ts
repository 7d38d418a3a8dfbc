/** AMT_BootSettingData as a one-time network boot needs it: a stale setting spoils the boot, a read-only one the Put (mps#752). */
import { unescapeXml } from './answer.js';
import type { Field } from './envelope.js';

/** Firmware rejects a Put that carries these back. */
const READ_ONLY = new Set([
  'BIOSLastStatus', 'BootguardStatus', 'OptionsCleared', 'RPEEnabled', 'SecureBootControlEnabled',
  'UEFIHTTPSBootEnabled', 'UEFILocalPBABootEnabled', 'WinREBootEnabled', 'UefiBootParametersArray',
]);

const OFF = new Set([
  'BIOSPause', 'BIOSSetup', 'ConfigurationDataReset', 'ForcedProgressEvents',
  'LockKeyboard', 'LockPowerButton', 'LockResetButton', 'LockSleepButton', 'ReflashBIOS', 'UseIDER', 'UseSOL',
  'UseSafeMode', 'UserPasswordBypass', 'SecureErase', 'PlatformErase',
]);

/** Zero too for the network: a media index would point at another source. */
const ZERO = new Set(['BootMediaIndex', 'FirmwareVerbosity', 'IDERBootDevice', 'UefiBootNumberOfParams']);

/**
 * @param given the fields of a Get, in the BMC's order
 * @returns the fields of the Put: only what the BMC gave, since older AMT has fewer
 */
export function clearedBootSettings(given: Readonly<Record<string, unknown>>): Field[] {
  const fields: Field[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (READ_ONLY.has(name) || typeof value !== 'string') continue;
    if (OFF.has(name)) fields.push([name, 'false']);
    else if (ZERO.has(name)) fields.push([name, '0']);
    // An empty password would be set as one.
    else if (name !== 'RSEPassword' || value !== '') fields.push([name, unescapeXml(value)]);
  }
  return fields;
}
