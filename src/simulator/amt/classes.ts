/** The classes that can be read, each with its instances as they are at the moment of the read. */
import type { Property } from './answers.js';
import type { BootOrder } from './boot-order.js';
import type { AmtFaults } from './faults.js';
import { currentScheme, healthClasses } from './health-classes.js';
import { BOOT_CONFIGURATION, BOOT_SOURCES, uriOf } from './names.js';
import type { PowerState } from './power-state.js';
import type { Selectors } from './request.js';

export interface AmtClass {
  readonly name: string;
  /** Class of the items of a Pull, where it differs. */
  readonly itemName?: string;
  /** Names of the properties that make an endpoint reference. */
  readonly keys: readonly string[];
  readonly instances: () => readonly (readonly Property[])[];
}

export interface ClassDeps {
  readonly machineUuid: string;
  readonly realm: string;
  readonly power: PowerState;
  readonly bootOrder: BootOrder;
  readonly faults: AmtFaults;
  /** The address on which AMT answers. */
  readonly host: string;
}

/** SMBIOS byte order: the first three groups are little-endian. */
export function smbiosHex(uuid: string): string {
  const groups = uuid.toUpperCase().split('-');
  return groups.map((group, index) => (index < 3 ? group.match(/../g)!.reverse().join('') : group)).join('');
}

const HOST = { resource: uriOf('CIM_ComputerSystem'), selectors: { CreationClassName: 'CIM_ComputerSystem', Name: 'ManagedSystem' } };
const POWER_SERVICE: readonly Property[] = [
  ['CreationClassName', 'CIM_PowerManagementService'], ['ElementName', 'Intel(r) AMT Power Management Service'], ['EnabledState', '5'],
  ['Name', 'Intel(r) AMT Power Management Service'], ['RequestedState', '12'], ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT'],
];
const SERVICE_KEYS = ['CreationClassName', 'Name', 'SystemCreationClassName', 'SystemName'];

const selectorsOf = (keys: readonly string[], properties: readonly Property[]): Selectors =>
  Object.fromEntries(properties.filter(([name, value]) => keys.includes(name) && typeof value === 'string')) as Record<string, string>;

export const referenceOf = ({ name, keys }: AmtClass, properties: readonly Property[]): { resource: string; selectors: Selectors } => ({ resource: uriOf(name), selectors: selectorsOf(keys, properties) });

/** Classes by resource URI. */
export function createClasses({ machineUuid, realm, power, bootOrder, faults, host }: ClassDeps): ReadonlyMap<string, AmtClass> {
  const associatedPower = (): readonly Property[] => {
    const { value, available } = power.read();
    if (faults.onlyPowerState) return [['PowerState', String(value)]];
    return [
      ...available.map((state): Property => ['AvailableRequestedPowerStates', String(state)]),
      ['PowerState', String(value)],
      ['ServiceProvided', { resource: uriOf('CIM_PowerManagementService'), selectors: selectorsOf(SERVICE_KEYS, POWER_SERVICE) }],
      ['UserOfService', HOST],
    ];
  };
  const service = (name: string, element: string): AmtClass => ({
    name,
    keys: SERVICE_KEYS,
    instances: () => [[['CreationClassName', name], ['ElementName', element], ['EnabledState', '5'], ['Name', element], ['RequestedState', '12'], ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT']]],
  });
  const software = (instanceId: string, version: string): readonly Property[] => [['InstanceID', instanceId], ['IsEntity', 'true'], ['VersionString', version]];
  const controlMode = (): string => (faults.ccmAccessDenied ? '1' : '2');
  const classes: readonly AmtClass[] = [
    { name: 'CIM_AssociatedPowerManagementService', keys: ['ServiceProvided', 'UserOfService'], instances: () => [associatedPower()] },
    { name: 'CIM_ServiceAvailableToElement', itemName: 'CIM_AssociatedPowerManagementService', keys: ['ServiceProvided', 'UserOfService'], instances: () => [associatedPower()] },
    { name: 'CIM_PowerManagementService', keys: SERVICE_KEYS, instances: () => [POWER_SERVICE] },
    {
      name: 'CIM_PowerManagementCapabilities', keys: ['InstanceID'],
      instances: () => [[['ElementName', 'Power Management Capabilities'], ['InstanceID', 'Intel(r) AMT:PowerManagementCapabilities 0'], ...[5, 8, 2, 10, 11, 12, 14].map((state): Property => ['RequestedPowerStatesSupported', String(state)])]],
    },
    {
      name: 'CIM_ComputerSystem', keys: ['CreationClassName', 'Name'],
      instances: () => ['ManagedSystem', 'Intel(r) AMT'].map((name): readonly Property[] => [['CreationClassName', 'CIM_ComputerSystem'], ['ElementName', name], ['Name', name], ['NameFormat', 'Other']]),
    },
    {
      name: 'CIM_ComputerSystemPackage', keys: ['Antecedent', 'Dependent'],
      instances: () => [[['Antecedent', { resource: uriOf('CIM_Chassis'), selectors: { CreationClassName: 'CIM_Chassis', Tag: 'CIM_Chassis' } }], ['Dependent', HOST], ['PlatformGUID', smbiosHex(faults.otherUuid ?? machineUuid)]]],
    },
    service('CIM_BootService', 'Intel(r) AMT Boot Service'),
    { name: 'CIM_BootConfigSetting', keys: ['InstanceID'], instances: () => [[['ElementName', BOOT_CONFIGURATION], ['InstanceID', BOOT_CONFIGURATION]]] },
    {
      name: 'CIM_BootSourceSetting', keys: ['InstanceID'],
      instances: () => BOOT_SOURCES.map((id, index): readonly Property[] => [['ElementName', id], ['FailThroughSupported', '2'], ['InstanceID', id], ['StructuredBootString', ['CIM:Network:1', 'CIM:Hard-Disk:1', 'CIM:CD/DVD:1'][index]!]]),
    },
    { name: 'CIM_SoftwareIdentity', keys: ['InstanceID'], instances: () => [software('Flash', faults.version), software('Netstack', faults.version), software('AMT', faults.version), software('Sku', '16392'), software('VendorID', '8086')] },
    { name: 'AMT_BootSettingData', keys: ['InstanceID'], instances: () => [bootOrder.settings()] },
    {
      name: 'AMT_BootCapabilities', keys: ['InstanceID'],
      instances: () => [[['BIOSSetup', 'true'], ['ElementName', 'Intel(r) AMT: Boot Capabilities'], ['ForceCDorDVDBoot', 'true'], ['ForceHardDriveBoot', 'true'], ['ForcePXEBoot', String(!faults.noPxe)], ['IDER', 'true'], ['InstanceID', 'Intel(r) AMT:BootCapabilities 0'], ['SOL', 'true']]],
    },
    { name: 'AMT_GeneralSettings', keys: ['InstanceID'], instances: () => [[['DigestRealm', `Digest:${faults.otherRealm ?? realm}`], ['ElementName', 'Intel(r) AMT: General Settings'], ['HostName', ''], ['IdleWakeTimeout', '1'], ['InstanceID', 'Intel(r) AMT: General Settings'], ['NetworkInterfaceEnabled', 'true'], ['PowerSource', faults.onBattery ? '1' : '0'], ['WsmanOnlyMode', 'false']]] },
    { name: 'AMT_SetupAndConfigurationService', keys: SERVICE_KEYS, instances: () => [[['CreationClassName', 'AMT_SetupAndConfigurationService'], ['Name', 'Intel(r) AMT Setup and Configuration Service'], ['ProvisioningMode', faults.ccmAccessDenied ? '4' : '1'], ['ProvisioningState', '2'], ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT']]] },
    { name: 'IPS_HostBasedSetupService', keys: SERVICE_KEYS, instances: () => [[['AllowedControlModes', '2'], ['AllowedControlModes', '1'], ['CreationClassName', 'IPS_HostBasedSetupService'], ['CurrentControlMode', controlMode()], ['Name', 'Intel(r) AMT Host Based Setup Service'], ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT']]] },
    {
      // OSPowerSavingState is not there while the machine is off (mps#2278).
      name: 'IPS_PowerManagementService', keys: SERVICE_KEYS,
      instances: () => [[['CreationClassName', 'IPS_PowerManagementService'], ['Name', 'Intel(r) AMT Power Management Service'], ...(power.actual() === 'on' && !faults.osPowerSavingAbsent ? [['OSPowerSavingState', faults.osSavesPower ? '3' : '2'] as const] : []), ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT']]],
    },
    { name: 'CIM_ElementSettingData', keys: ['ManagedElement', 'SettingData'], instances: () => [[['IsNext', bootOrder.armed().role === 1 ? '3' : '2'], ['ManagedElement', HOST], ['SettingData', { resource: uriOf('CIM_BootConfigSetting'), selectors: { InstanceID: BOOT_CONFIGURATION } }]], currentScheme(faults)] },
    ...healthClasses({ faults, host }),
  ];
  return new Map(classes.map((known) => [uriOf(known.name), known]));
}
