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

export const ControlModeBody = z.object({ IPS_HostBasedSetupService: z.looseObject({ CurrentControlMode: integer }) });

export const IdentifyBody = z.object({ IdentifyResponse: z.looseObject({ ProductVendor: scalar, ProductVersion: scalar }) });

/** A Put echoes the resource; that it answered is what counts. */
export const PutBody = z.object({ AMT_BootSettingData: z.unknown() });

export const methodBody = (method: string): z.ZodType<number> =>
  z.looseObject({ [`${method}_OUTPUT`]: z.looseObject({ ReturnValue: integer }) }).transform((body) => (body[`${method}_OUTPUT`] as { ReturnValue: number }).ReturnValue);
