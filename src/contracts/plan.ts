/** What a run pins when it starts: class, template, digest, disks, limits. Edits made afterwards do not touch it. */
import { z } from 'zod';
import { PAYLOADS, REQUESTS } from '../domain/runs.js';
import { ACTION_NAMES } from '../domain/actions.js';
import { BmcAddress } from './device.js';
import { COMPRESSIONS, DiskRule } from './node-class.js';
import { DeviceId, RunNumber, Sha256 } from './primitives.js';

/** One action of a rendered template. */
export const PlannedAction = z.object({
  /** Unique in the run. */
  title: z.string().max(200),
  name: z.enum(ACTION_NAMES as [(typeof ACTION_NAMES)[number], ...(typeof ACTION_NAMES)[number][]]),
  timeoutSeconds: z.number().int().positive(),
});
export type PlannedAction = z.infer<typeof PlannedAction>;

export const PlannedImage = z.object({
  /** As the class has it; the agent's URL is made from it. */
  source: z.string(),
  /** Absolute, from the node's view. */
  url: z.string(),
  sha256: Sha256,
  sizeBytes: z.number().int(),
  compression: z.enum(COMPRESSIONS),
  unpackedBytes: z.number().int(),
  contentDigest: Sha256.optional(),
});
export type PlannedImage = z.infer<typeof PlannedImage>;

export const RunPlan = z.object({
  deviceId: DeviceId,
  nodeName: z.string(),
  run: RunNumber,
  kind: z.enum(REQUESTS),
  site: z.string(),
  systemUuid: z.string().nullable(),
  bmc: BmcAddress,
  /** Whether this run destroys what the listed disks hold. */
  wipes: z.boolean(),
  netboots: z.boolean(),
  nodeClass: z.string().nullable(),
  payload: z.enum(PAYLOADS).nullable(),
  template: z.string().nullable(),
  image: PlannedImage.nullable(),
  diskRule: DiskRule,
  rootDisk: z.string().nullable(),
  wipeDisks: z.array(z.string()),
  actions: z.array(PlannedAction),
  /** The site's named seed of the class; null for the payload's own. */
  seed: z.string().nullable(),
  /** Of the class; absent where it has none. */
  sshKeys: z.array(z.string()).optional(),
  /** Of the class: `secret:<name>`, a reference and never the text. */
  userData: z.string().optional(),
  allowUnproven: z.boolean(),
  /** How a provision is confirmed: the seed fetched with the code, its report (written, read back, rebooted), or phone_home. */
  confirmBy: z.enum(['seed-fetched', 'seed-written', 'phone-home', 'power-off', 'none']),
});
export type RunPlan = z.infer<typeof RunPlan>;
