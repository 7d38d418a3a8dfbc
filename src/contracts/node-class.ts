/** classes.yaml: what a node is to become. */
import { z } from 'zod';
import { PAYLOADS } from '../domain/runs.js';
import { SecretReference, SshKey } from './metadata.js';
import { Sha256 } from './primitives.js';

export const COMPRESSIONS = ['none', 'gzip', 'xz', 'zstd'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

export const DiskRule = z.strictObject({
  minBytes: z.number().int().positive().optional(),
  maxBytes: z.number().int().positive().optional(),
  model: z.string().min(1).optional(),
  bus: z.string().min(1).optional(),
});

export const ClassImage = z.strictObject({
  /** https, or a path on the node network's own asset server: `asset:images/talos.raw.gz`. */
  url: z.string().max(2000).regex(/^(https:\/\/\S+|asset:[A-Za-z0-9._/-]+)$/, 'must be https://… or asset:<path>'),
  /** Over the bytes as fetched, before any unpacking. */
  sha256: Sha256,
  /** Bytes as fetched. */
  sizeBytes: z.number().int().positive(),
  compression: z.enum(COMPRESSIONS).default('none'),
  /** Bytes on the disk once unpacked; the same as sizeBytes for `none`. */
  unpackedBytes: z.number().int().positive().optional(),
  /** SHA-256 over the unpacked bytes; checked on the disk when given. */
  contentDigest: Sha256.optional(),
}).refine((image) => image.compression === 'none' || image.unpackedBytes !== undefined, { message: 'unpackedBytes is needed for a compressed image', path: ['unpackedBytes'] });
export type ClassImage = z.infer<typeof ClassImage>;

export const NodeClass = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and -'),
  payload: z.enum(PAYLOADS),
  image: ClassImage,
  /** Name of a template: built in, or a file of the site's templates folder. */
  template: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/).default('install'),
  rootDisk: DiskRule.default({}),
  /** Whether retiring a node of this class wipes its listed disks first. */
  retireWipes: z.boolean().default(false),
  /** Admit a node whose AK has no TPM proof; it stays marked `unproven`. */
  allowUnproven: z.boolean().default(false),
  /** cloud-init only: active when the installed system phones home, not when its seed was read back. */
  phoneHome: z.boolean().default(false),
  /** Name of the site's seed template; the payload's own by default. */
  seed: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/).optional(),
  /** Public keys of people, for the node's metadata and its cloud-init seed. */
  sshKeys: z.array(SshKey).max(64).optional(),
  /** A file of the secrets folder that is the user-data: `secret:<name>`. */
  userData: SecretReference.optional(),
});
export type NodeClass = z.infer<typeof NodeClass>;

export const ClassesFile = z.strictObject({ classes: z.array(NodeClass).max(1000) }).superRefine((file, context) => {
  const seen = new Set<string>();
  for (const [index, { name }] of file.classes.entries()) {
    if (seen.has(name)) context.addIssue({ code: 'custom', message: `class ${name} is there twice`, path: ['classes', index, 'name'] });
    seen.add(name);
  }
});
export type ClassesFile = z.infer<typeof ClassesFile>;
