/** Where an installed system finds its seed, and what it makes of it: pure, given the files. */
import { parse } from 'yaml';
import { z } from 'zod';
import { FleetSeed } from '../../../contracts/agent-api.js';
import { readJson } from '../../../domain/json.js';
import { issuesText } from '../../../contracts/primitives.js';

/** `efi` is the EFI system partition, `root` the root file system. */
export type DiskPlace = 'efi' | 'root';

/** Reads a file from a partition of a disk; null when the disk has no such file. */
export type ReadDiskFile = (diskPath: string, place: DiskPlace, path: string) => Promise<Buffer | null>;

export const FLEET_SEED_PATH = 'fleet-seed.json';
export const NOCLOUD_PATH = 'var/lib/cloud/seed/nocloud';

export interface PhoneHome {
  readonly url: string;
  /** application/x-www-form-urlencoded, as cloud-init posts it. */
  readonly form: string;
}

export type Seed =
  | { readonly kind: 'fleet'; readonly seed: FleetSeed; readonly bytes: Buffer }
  | { readonly kind: 'nocloud'; readonly instanceId: string; readonly phoneHome: PhoneHome | null; readonly bytes: Buffer }
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly why: string };

const unreadable = (why: string): Seed => ({ kind: 'unreadable', why });

export function readFleetSeed(bytes: Buffer): Seed {
  const json = readJson(bytes.toString('utf8'));
  if (json.kind === 'refused') return unreadable(`${FLEET_SEED_PATH} ${json.why}`);
  const parsed = FleetSeed.safeParse(json.value);
  return parsed.success ? { kind: 'fleet', seed: parsed.data, bytes } : unreadable(`${FLEET_SEED_PATH}: ${issuesText(parsed.error)}`);
}

/** The part of meta-data that cloud-init cannot do without. */
const MetaData = z.object({ 'instance-id': z.string().min(1), 'local-hostname': z.string().optional() });
const VendorData = z.object({ phone_home: z.object({ url: z.string() }).optional() });

/** YAML as cloud-init takes it: a mapping, or nothing at all. */
function readYaml<T>(bytes: Buffer | null, schema: z.ZodType<T>, name: string): { value: T } | { why: string } {
  try {
    const parsed = schema.safeParse(bytes && bytes.length > 0 ? (parse(bytes.toString('utf8'), { maxAliasCount: 100 }) ?? {}) : {});
    return parsed.success ? { value: parsed.data } : { why: `${name}: ${issuesText(parsed.error)}` };
  } catch (error) {
    return { why: `${name} is no YAML: ${(error as Error).message.slice(0, 200)}` };
  }
}

/** `$INSTANCE_ID` in the URL and the posted fields are cloud-init's (module phone_home). */
function phoneHomeOf(url: string, instanceId: string, hostname: string): PhoneHome {
  return { url: url.replaceAll('$INSTANCE_ID', instanceId), form: new URLSearchParams({ instance_id: instanceId, hostname, fqdn: hostname }).toString() };
}

/** The NoCloud seed of a root file system (cloud-init's datasource NoCloud). `userData` is kept and not run. */
export function readNocloudSeed({ metaData, userData, vendorData }: { metaData: Buffer; userData: Buffer | null; vendorData: Buffer | null }): Seed {
  const meta = readYaml(metaData, MetaData, 'meta-data');
  if ('why' in meta) return unreadable(meta.why);
  const vendor = readYaml(vendorData, VendorData, 'vendor-data');
  if ('why' in vendor) return unreadable(vendor.why);
  const instanceId = meta.value['instance-id'];
  const url = vendor.value.phone_home?.url;
  const phoneHome = url ? phoneHomeOf(url, instanceId, meta.value['local-hostname'] ?? '') : null;
  const bytes = Buffer.concat([metaData, userData ?? Buffer.alloc(0), vendorData ?? Buffer.alloc(0)]);
  return { kind: 'nocloud', instanceId, phoneHome, bytes };
}

/** Looks for a seed where talos, nixos and alpine images have it, then where cloud-init does. Never throws. */
export async function findSeed(diskPath: string, readDiskFile: ReadDiskFile): Promise<Seed> {
  try {
    const fleet = await readDiskFile(diskPath, 'efi', FLEET_SEED_PATH);
    if (fleet) return readFleetSeed(fleet);
    const metaData = await readDiskFile(diskPath, 'root', `${NOCLOUD_PATH}/meta-data`);
    if (!metaData) return { kind: 'none' };
    const userData = await readDiskFile(diskPath, 'root', `${NOCLOUD_PATH}/user-data`);
    const vendorData = await readDiskFile(diskPath, 'root', `${NOCLOUD_PATH}/vendor-data`);
    return readNocloudSeed({ metaData, userData, vendorData });
  } catch (error) {
    return unreadable((error as Error).message.slice(0, 300));
  }
}
