/** What an order asks of the agent, and what the agent reports. */
import { z } from 'zod';
import { COMPRESSIONS } from './node-class.js';
import { OpaqueId, RunNumber, Sha256 } from './primitives.js';

/** A disk pinned by serial or WWN; never by a device name, which moves between boots. */
export const DiskRef = z.object({ serial: z.string().max(200), wwn: z.string().max(200).optional() });
export type DiskRef = z.infer<typeof DiskRef>;

export const WipeDiskAction = z.object({ name: z.literal('wipe-disk'), disk: DiskRef });
export const WriteImageAction = z.object({
  name: z.literal('write-image'),
  disk: DiskRef,
  /** Absolute, from the node's view. */
  url: z.string().max(2000),
  sha256: Sha256,
  sizeBytes: z.number().int().positive(),
  compression: z.enum(COMPRESSIONS),
  unpackedBytes: z.number().int().positive(),
  contentDigest: Sha256.optional(),
});
export const WriteSeedAction = z.object({
  name: z.literal('write-seed'),
  disk: DiskRef,
  /** `efi`: fleet-seed.json on the EFI system partition; `nocloud`: a tree under /var/lib/cloud/seed/nocloud on the root partition. */
  place: z.enum(['efi', 'nocloud']),
});
export const SetNextBootAction = z.object({ name: z.literal('set-next-boot'), disk: DiskRef });
export const RebootAction = z.object({ name: z.literal('reboot') });

export const AgentAction = z.discriminatedUnion('name', [WipeDiskAction, WriteImageAction, WriteSeedAction, SetNextBootAction, RebootAction]);
export type AgentAction = z.infer<typeof AgentAction>;

export const Order = z.object({
  orderId: OpaqueId,
  run: RunNumber,
  /** Name of the action in the template, unique in the run. */
  title: z.string().max(200),
  action: AgentAction,
  timeoutSeconds: z.number().int().positive(),
  destructive: z.boolean(),
  grant: z.number().int().min(1),
});
export type Order = z.infer<typeof Order>;

export const OrderProgress = z.object({
  done: z.number().nonnegative(),
  total: z.number().nonnegative(),
  unit: z.string().max(20),
  note: z.string().max(500).optional(),
});
export type OrderProgress = z.infer<typeof OrderProgress>;

export const OrderReport = z.object({
  result: z.enum(['succeeded', 'failed', 'timed-out']),
  /** A code of the error table when the agent knows one, e.g. `image_digest_mismatch`. */
  code: z.string().max(60).optional(),
  message: z.string().max(4000),
  exit: z.number().int().optional(),
  /** Small facts worth keeping: digest found, bytes written, wipe method. Never a secret. */
  evidence: z.record(z.string().max(60), z.union([z.string().max(2000), z.number(), z.boolean()])).optional(),
});
export type OrderReport = z.infer<typeof OrderReport>;

/** A file of a seed, as the agent writes it. */
export const SeedFile = z.object({ path: z.string().max(300), content: z.string().max(200_000), mode: z.number().int().min(0).max(0o777) });
export type SeedFile = z.infer<typeof SeedFile>;
