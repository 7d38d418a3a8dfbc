/**
 * The parts of Redfish resources that we use (DSP0266 1.20, DSP0268 ComputerSystem). Everything else may be there or not: a property
 * that a service leaves out, or sends as null, is simply not known.
 */
import { z } from 'zod';

/** Cut rather than refused: no text that we use is this long. */
const text = z.string().transform((value) => value.slice(0, 2000));
const maybe = <T extends z.ZodType>(shape: T): z.ZodType<z.infer<T> | undefined> => shape.nullish().catch(undefined).transform((value) => (value ?? undefined) as z.infer<T> | undefined);
const words = maybe(z.array(text).max(200));

/** A path on the same service: what a BMC names as a link is never followed elsewhere. */
export const ResourcePath = z.string().max(1000).regex(/^\/(?!\/)[\x21-\x7e]*$/, 'is no path');
const Link = z.object({ '@odata.id': ResourcePath });
const maybeLink = maybe(Link);

export const ServiceRoot = z.object({
  RedfishVersion: maybe(text),
  Systems: Link,
  Links: maybe(z.object({ Sessions: maybeLink })),
});

export const Collection = z.object({ Members: z.array(Link).max(1000), 'Members@odata.nextLink': maybe(ResourcePath) });
export type Collection = z.infer<typeof Collection>;

const Boot = z.object({
  BootSourceOverrideMode: maybe(text),
  'BootSourceOverrideMode@Redfish.AllowableValues': words,
  'BootSourceOverrideTarget@Redfish.AllowableValues': words,
  'BootSourceOverrideEnabled@Redfish.AllowableValues': words,
});
export type Boot = z.infer<typeof Boot>;

const ResetAction = z.object({
  target: ResourcePath,
  'ResetType@Redfish.AllowableValues': words,
  '@Redfish.ActionInfo': maybe(ResourcePath),
});

export const ComputerSystem = z.object({
  Id: maybe(text),
  Name: maybe(text),
  UUID: maybe(text),
  Manufacturer: maybe(text),
  Model: maybe(text),
  PowerState: maybe(text),
  Boot: maybe(Boot),
  Actions: maybe(z.object({ '#ComputerSystem.Reset': maybe(ResetAction) })),
  Links: maybe(z.object({ ManagedBy: maybe(z.array(Link).max(50)) })),
  '@odata.etag': maybe(text),
});
export type ComputerSystem = z.infer<typeof ComputerSystem>;

export const ActionInfo = z.object({ Parameters: z.array(z.object({ Name: text, AllowableValues: words })).max(100) });

export const Manager = z.object({ FirmwareVersion: maybe(text), Model: maybe(text) });

/** DSP0266 §8.6. Services fill it as they like: each part may be missing. */
export const ErrorBody = z.object({
  error: z.object({
    code: maybe(text),
    message: maybe(text),
    '@Message.ExtendedInfo': maybe(z.array(z.object({ MessageId: maybe(text), Message: maybe(text), Resolution: maybe(text) })).max(50)),
  }),
});
