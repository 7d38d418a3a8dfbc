/** The parts of NetBox's REST representations that are read; everything else passes unseen. Captured from NetBox 4.7.3. */
import { z } from 'zod';

/** A choice reads as `{value, label}`; plain text is what older versions gave. */
const Choice = z.union([z.string(), z.object({ value: z.string() }).transform(({ value }) => value)]);

const NestedAddress = z.object({ id: z.number().int(), address: z.string() });

export const RestDevice = z.object({
  id: z.number().int().positive(),
  name: z.string().nullable(),
  status: Choice,
  site: z.object({ slug: z.string() }),
  oob_ip: NestedAddress.nullish(),
  primary_ip4: NestedAddress.nullish(),
  primary_ip6: NestedAddress.nullish(),
  tags: z.array(z.object({ slug: z.string() })).nullish(),
  /** Merged by NetBox: the config contexts that apply, then the device's own local context. */
  config_context: z.unknown(),
  custom_fields: z.record(z.string(), z.unknown()).default({}),
  last_updated: z.string(),
});
export type RestDevice = z.infer<typeof RestDevice>;

export const RestInterface = z.object({
  id: z.number().int(),
  device: z.object({ id: z.number().int() }).nullish(),
  name: z.string(),
  mgmt_only: z.boolean().default(false),
  /** The primary one; all NetBox had before 4.2. */
  mac_address: z.string().nullish(),
  mac_addresses: z.array(z.object({ mac_address: z.string() })).nullish(),
});
export type RestInterface = z.infer<typeof RestInterface>;

export const RestAddress = z.object({
  id: z.number().int(),
  address: z.string(),
  role: Choice.nullish(),
  assigned_object_type: z.string().nullish(),
  assigned_object_id: z.number().int().nullish(),
});
export type RestAddress = z.infer<typeof RestAddress>;

/** What a list of changed devices needs of each. */
export const RestStamp = z.object({ id: z.number().int().positive(), last_updated: z.string() });

/** `count` is null under cursor pagination. */
export const RestPage = z.object({ next: z.string().nullable(), results: z.array(z.unknown()) });
