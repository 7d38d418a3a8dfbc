/** Namespaces, resource URIs and instance ids of Intel AMT's WS-Management, spelled exactly as the firmware expects them. */

export const NS = {
  soap: 'http://www.w3.org/2003/05/soap-envelope',
  addressing: 'http://schemas.xmlsoap.org/ws/2004/08/addressing',
  wsman: 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd',
  transfer: 'http://schemas.xmlsoap.org/ws/2004/09/transfer',
  enumeration: 'http://schemas.xmlsoap.org/ws/2004/09/enumeration',
  identity: 'http://schemas.dmtf.org/wbem/wsman/identity/1/wsmanidentity.xsd',
} as const;

export const ANONYMOUS = `${NS.addressing}/role/anonymous`;

const CIM = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/';
const AMT = 'http://intel.com/wbem/wscim/1/amt-schema/1/';
const IPS = 'http://intel.com/wbem/wscim/1/ips-schema/1/';

export const RESOURCES = {
  CIM_AssociatedPowerManagementService: `${CIM}CIM_AssociatedPowerManagementService`,
  CIM_PowerManagementService: `${CIM}CIM_PowerManagementService`,
  CIM_ComputerSystem: `${CIM}CIM_ComputerSystem`,
  CIM_ComputerSystemPackage: `${CIM}CIM_ComputerSystemPackage`,
  CIM_BootConfigSetting: `${CIM}CIM_BootConfigSetting`,
  CIM_BootSourceSetting: `${CIM}CIM_BootSourceSetting`,
  CIM_BootService: `${CIM}CIM_BootService`,
  CIM_ElementSettingData: `${CIM}CIM_ElementSettingData`,
  CIM_SoftwareIdentity: `${CIM}CIM_SoftwareIdentity`,
  AMT_BootSettingData: `${AMT}AMT_BootSettingData`,
  AMT_BootCapabilities: `${AMT}AMT_BootCapabilities`,
  AMT_EthernetPortSettings: `${AMT}AMT_EthernetPortSettings`,
  AMT_GeneralSettings: `${AMT}AMT_GeneralSettings`,
  AMT_SetupAndConfigurationService: `${AMT}AMT_SetupAndConfigurationService`,
  AMT_SystemPowerScheme: `${AMT}AMT_SystemPowerScheme`,
  AMT_TimeSynchronizationService: `${AMT}AMT_TimeSynchronizationService`,
  IPS_HostBasedSetupService: `${IPS}IPS_HostBasedSetupService`,
  IPS_PowerManagementService: `${IPS}IPS_PowerManagementService`,
} as const;
export type ResourceName = keyof typeof RESOURCES;

/** The one boot configuration that AMT has. */
export const BOOT_CONFIGURATION = 'Intel(r) AMT: Boot Configuration 0';
/** CIM_BootSourceSetting.InstanceID of the network. Another spelling is accepted and then ignored (mps#752). */
export const FORCE_PXE_BOOT = 'Intel(r) AMT: Force PXE Boot';
/** AMT_EthernetPortSettings.InstanceID of the wired port; 1 is the wireless one. */
export const WIRED_PORT = 'Intel(r) AMT Ethernet Port Settings 0';
/** CIM_BootService.SetBootConfigRole: the next boot only; AMT takes it back by itself. */
export const ROLE_NEXT_SINGLE_USE = 1;

/** CIM_PowerManagementService.RequestPowerStateChange. Runs send these two only: no cycle, no reset (A3). */
export const POWER_REQUEST = { on: 2, off: 8 } as const;
