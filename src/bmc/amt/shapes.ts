/** The parts of AMT's answers that we use. Everything else may be there or not (mps#2278), in any order. */
import { z } from 'zod';

const scalar = z.string().max(4096);
const integer = z.string().regex(/^\d{1,9}$/, 'is no number').transform(Number);
const flag = z.string().regex(/^(true|false)$/i, 'is neither true nor false').transform((text) => text.toLowerCase() === 'true');

export const PowerStateBody = z.object({ CIM_AssociatedPowerManagementService: z.looseObject({ PowerState: integer }) });

/** An empty element arrives as the empty string. */
export const PlatformGuidBody = z.object({ CIM_ComputerSystemPackage: z.looseObject({ PlatformGUID: scalar.optional() }).or(z.literal('')) });

/** Repeated elements (BIOSLastStatus) arrive as a list. */
export const BootSettingsBody = z.object({ AMT_BootSettingData: z.record(z.string().max(100), z.unknown()) });

export const BootCapabilitiesBody = z.object({ AMT_BootCapabilities: z.looseObject({ ForcePXEBoot: flag }) });

/** Some firmware writes a single instance's list as one element. */
const list = z.union([z.array(scalar), scalar.transform((one) => [one])]);

export const EnumerateBody = z.object({ EnumerateResponse: z.looseObject({ EnumerationContext: scalar }) });

/** One Pull: items of a class, and where it goes on; `EndOfSequence` wins over a context beside it. */
export const pullBody = <T>(name: string, item: z.ZodType<T>): z.ZodType<{ items: T[]; next: string | null }> =>
  z.object({
    PullResponse: z.looseObject({
      Items: z.looseObject({ [name]: z.union([z.array(item), item.transform((one) => [one])]).optional() }).or(z.literal('')).optional(),
      EnumerationContext: scalar.optional(),
    }),
  })
    .transform(({ PullResponse: pulled }) => ({
      items: typeof pulled.Items === 'object' ? ((pulled.Items[name] ?? []) as T[]) : [],
      next: 'EndOfSequence' in pulled ? null : (pulled.EnumerationContext ?? null),
    }));

export const SoftwareItem = z.looseObject({ InstanceID: scalar, VersionString: scalar.optional() });

export const PowerSchemeItem = z.looseObject({ InstanceID: scalar, Description: scalar.optional(), ElementName: scalar.optional() });

/** `IsCurrent` 1: the setting that counts. Its reference is known by the texts of its selectors. */
export const ElementSettingItem = z.looseObject({
  IsCurrent: scalar.optional(),
  SettingData: z.looseObject({
    ReferenceParameters: z.looseObject({ ResourceURI: scalar.optional(), SelectorSet: z.looseObject({ Selector: list.optional() }).or(z.literal('')).optional() }).optional(),
  }).optional(),
});

export const ProvisioningBody = z.object({ AMT_SetupAndConfigurationService: z.looseObject({ ProvisioningMode: integer.optional(), ProvisioningState: integer.optional() }) });

export const PortBody = z.object({
  AMT_EthernetPortSettings: z.looseObject({
    IPAddress: scalar.optional(), DHCPEnabled: flag.optional(), SharedStaticIp: flag.optional(), SharedDynamicIP: flag.optional(), LinkPolicy: list.optional(),
  }),
});

export const GeneralSettingsBody = z.object({ AMT_GeneralSettings: z.looseObject({ PowerSource: integer.optional(), IdleWakeTimeout: integer.optional() }) });

/** Ta0: seconds since 1970. */
export const TimeBody = z.object({ GetLowAccuracyTimeSynch_OUTPUT: z.looseObject({ Ta0: z.string().regex(/^\d{1,12}$/, 'is no time').transform(Number).optional(), ReturnValue: integer }) });

/** Without OSPowerSavingState where the machine is off or AMT is older than 10 (mps#2278); the class itself may be missing too. */
export const OsPowerBody = z.object({ IPS_PowerManagementService: z.looseObject({ OSPowerSavingState: integer.optional() }) });

export const ControlModeBody = z.object({ IPS_HostBasedSetupService: z.looseObject({ CurrentControlMode: integer }) });

export const IdentifyBody = z.object({ IdentifyResponse: z.looseObject({ ProductVendor: scalar, ProductVersion: scalar }) });

/** A Put echoes the resource; that it answered is what counts. */
export const PutBody = z.object({ AMT_BootSettingData: z.unknown() });

export const methodBody = (method: string): z.ZodType<number> =>
  z.looseObject({ [`${method}_OUTPUT`]: z.looseObject({ ReturnValue: integer }) }).transform((body) => (body[`${method}_OUTPUT`] as { ReturnValue: number }).ReturnValue);
