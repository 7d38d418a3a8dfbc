/** What AMT will do at the next boot: a role, the first source that was set, and the boot settings. Consumed by one boot. */
import type { AmtFaults } from './faults.js';
import { BOOT_SOURCES, PXE, type BootSource } from './names.js';

/** CIM_BootService roles. */
export const NEXT_SINGLE_USE = 1;
export const NOT_NEXT = 32_768;

export interface ArmedBoot {
  readonly role: typeof NEXT_SINGLE_USE | typeof NOT_NEXT;
  readonly source: BootSource | null;
  /** What the next boot would be. */
  readonly boot: 'network' | 'disk';
}

/** AMT_BootSettingData as AMT 16 has it after a cold start. */
const SETTINGS = {
  BIOSPause: 'false', BIOSSetup: 'false', BootMediaIndex: '0', ConfigurationDataReset: 'false', ElementName: 'Intel(r) AMT Boot Configuration Settings',
  EnforceSecureBoot: 'false', FirmwareVerbosity: '0', ForcedProgressEvents: 'false', IDERBootDevice: '0', InstanceID: 'Intel(r) AMT:BootSettingData 0',
  LockKeyboard: 'false', LockPowerButton: 'false', LockResetButton: 'false', LockSleepButton: 'false', OwningEntity: 'Intel(r) AMT', PlatformErase: 'false',
  RSEPassword: '', ReflashBIOS: 'false', SecureErase: 'false', UefiBootNumberOfParams: '0', UseIDER: 'false', UseSOL: 'false', UseSafeMode: 'false', UserPasswordBypass: 'false',
} as const;
const READ_ONLY = {
  BootguardStatus: '127', OptionsCleared: 'true', RPEEnabled: 'false', SecureBootControlEnabled: 'false', UEFIHTTPSBootEnabled: 'true', UEFILocalPBABootEnabled: 'true', WinREBootEnabled: 'true',
} as const;
/** What AMT 8 did not know yet. */
const NEWER: readonly string[] = [
  'BIOSLastStatus', 'BootguardStatus', 'EnforceSecureBoot', 'OptionsCleared', 'PlatformErase', 'RPEEnabled', 'RSEPassword',
  'SecureBootControlEnabled', 'SecureErase', 'UEFIHTTPSBootEnabled', 'UEFILocalPBABootEnabled', 'UefiBootNumberOfParams', 'WinREBootEnabled',
];
/** No source may be set while one of these is true, and the other way round. */
const EXCLUDE_A_SOURCE = ['UseSOL', 'UseIDER', 'ReflashBIOS', 'BIOSPause', 'BIOSSetup'];

export interface BootOrder {
  settings(): readonly (readonly [name: string, value: string])[];
  /** `rejected` for fields that are read-only or unknown, and for settings that a source excludes. */
  putSettings(given: readonly (readonly [name: string, value: string])[]): 'taken' | 'rejected';
  setRole(role: number): 'taken' | 'invalid';
  clearSource(): void;
  /** The first source wins until it is cleared or consumed, unless the switch says otherwise. */
  setSource(id: string): 'taken' | 'invalid';
  armed(): ArmedBoot;
  /** A boot happens: says from where, and falls back. */
  consume(): 'network' | 'disk';
}

/** @param deps.initial overrides of the settings, e.g. a stale `BIOSSetup: 'true'` */
export function createBootOrder({ faults, initial = {} }: { faults: AmtFaults; initial?: Readonly<Record<string, string>> | undefined }): BootOrder {
  const settings = new Map<string, string>(Object.entries({ ...SETTINGS, ...initial }));
  let role: ArmedBoot['role'] = NOT_NEXT;
  let source: BootSource | null = null;
  const anyTrue = (values: ReadonlyMap<string, string>): boolean => EXCLUDE_A_SOURCE.some((name) => values.get(name) === 'true');
  const there = (name: string): boolean => !(faults.fewerBootSettings && NEWER.includes(name));
  const next = (): 'network' | 'disk' => (!faults.ignoresBootOrder && role === NEXT_SINGLE_USE && source === PXE && settings.get('BootMediaIndex') === '0' ? 'network' : 'disk');
  return {
    settings: () => ([['BIOSLastStatus', '2'], ['BIOSLastStatus', '0'], ...settings, ...Object.entries(READ_ONLY)] as const).filter(([name]) => there(name)),
    putSettings(given) {
      const wanted = new Map(given);
      const fits = given.every(([name]) => settings.has(name) && there(name)) && !(source !== null && anyTrue(wanted));
      if (!fits) return 'rejected';
      for (const [name, value] of given) settings.set(name, value);
      return 'taken';
    },
    setRole(wanted) {
      if (wanted !== NEXT_SINGLE_USE && wanted !== NOT_NEXT) return 'invalid';
      role = wanted;
      return 'taken';
    },
    clearSource: () => void (source = null),
    setSource(id) {
      const known = BOOT_SOURCES.find((name) => name === id);
      if (!known || anyTrue(settings)) return 'invalid';
      source = faults.sourceRule === 'last-wins' ? known : (source ?? known);
      return 'taken';
    },
    armed: () => ({ role, source, boot: next() }),
    consume() {
      const boot = next();
      // Without the role the order is not looked at, and its source stays for whoever sets the role next (mps#752).
      if (role === NEXT_SINGLE_USE) source = null;
      role = NOT_NEXT;
      return boot;
    },
  };
}
