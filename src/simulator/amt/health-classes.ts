/** The classes that tell how an AMT is set up: its ports, its power policy. */
import type { Property } from './answers.js';
import type { AmtClass } from './classes.js';
import type { AmtFaults } from './faults.js';
import { uriOf } from './names.js';

/** AMT_SystemPowerScheme.Description, as the firmware's own screen words it. */
const SCHEMES = ['Desktop: ON in S0', 'Desktop: ON in S0, ME Wake in S3, S4-5'] as const;
const schemeId = (index: number): string => `Intel(r) AMT:PowerScheme ${index}`;

/** AMT_EthernetPortSettings.LinkPolicy: S0 on mains, Sx on mains, S0 on battery. */
const LINK_ALWAYS = ['1', '14', '16'];
const LINK_IN_S0 = ['1', '16'];

/** Which power scheme counts: an association, as in the firmware, and no property of the scheme. */
export const currentScheme = (faults: AmtFaults): readonly Property[] => [
  ['IsCurrent', '1'],
  ['ManagedElement', { resource: uriOf('CIM_ComputerSystem'), selectors: { CreationClassName: 'CIM_ComputerSystem', Name: 'Intel(r) AMT' } }],
  ['SettingData', { resource: uriOf('AMT_SystemPowerScheme'), selectors: { InstanceID: schemeId(faults.sleepsWithHost ? 0 : 1) } }],
];

/** @param host the address on which AMT answers */
export function healthClasses({ faults, host }: { faults: AmtFaults; host: string }): readonly AmtClass[] {
  const wired = (): readonly Property[] => [
    ['DHCPEnabled', String(!faults.hostsStaticAddress)], ['ElementName', 'Intel(r) AMT Ethernet Port Settings'], ['InstanceID', 'Intel(r) AMT Ethernet Port Settings 0'],
    ['IPAddress', host], ['IpSyncEnabled', 'true'], ['LinkIsUp', 'true'], ...(faults.sleepsWithHost ? LINK_IN_S0 : LINK_ALWAYS).map((state): Property => ['LinkPolicy', state]),
    ['MACAddress', '02-00-00-00-00-01'], ['PhysicalConnectionType', '0'], ['SharedDynamicIP', String(!faults.hostsStaticAddress)], ['SharedMAC', 'true'],
    ['SharedStaticIp', String(faults.hostsStaticAddress)], ['SubnetMask', '255.255.255.0'],
  ];
  const wireless: readonly Property[] = [
    ['DHCPEnabled', 'true'], ['ElementName', 'Intel(r) AMT Ethernet Port Settings'], ['InstanceID', 'Intel(r) AMT Ethernet Port Settings 1'], ['LinkIsUp', 'false'],
    ['LinkPreference', '2'], ['MACAddress', '00-00-00-00-00-00'], ['PhysicalConnectionType', '3'], ['WLANLinkProtectionLevel', '1'],
  ];
  return [
    { name: 'AMT_EthernetPortSettings', keys: ['InstanceID'], instances: () => [wired(), wireless] },
    {
      name: 'AMT_SystemPowerScheme', keys: ['InstanceID'],
      instances: () => SCHEMES.map((description, index): readonly Property[] => [['Description', description], ['ElementName', 'Intel(r) AMT Power Scheme'], ['InstanceID', schemeId(index)], ['SchemeGUID', String(index).repeat(32)]]),
    },
    {
      name: 'AMT_TimeSynchronizationService', keys: ['CreationClassName', 'Name', 'SystemCreationClassName', 'SystemName'],
      instances: () => [[['CreationClassName', 'AMT_TimeSynchronizationService'], ['ElementName', 'Intel(r) AMT Time Synchronization Service'], ['EnabledState', '5'], ['LocalTimeSyncEnabled', '0'], ['Name', 'Intel(r) AMT Time Synchronization Service'], ['SystemCreationClassName', 'CIM_ComputerSystem'], ['SystemName', 'Intel(r) AMT'], ['TimeSource', '0']]],
    },
  ];
}
