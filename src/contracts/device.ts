/** A NetBox device as metalflow reads it. NetBox is the desired state; nothing here is invented by us. */
import { z } from 'zod';
import { REQUESTS } from '../domain/runs.js';
import { DeviceMetadata } from './metadata.js';
import { DeviceId, Instant, Mac, MachineUuid, ShortName } from './primitives.js';

export const BMC_TYPES = ['amt', 'redfish', 'ipmi', 'manual'] as const;
/** What a one-time network boot starts with; `uefi-http` is Redfish's only. */
export const BMC_BOOTS = ['pxe', 'uefi-http'] as const;

/** Ports that mean the BMC itself, plain and over TLS: an address that names one is the same BMC as one that names none. */
export const BMC_OWN_PORTS: { readonly [type in (typeof BMC_TYPES)[number]]: readonly number[] } = { amt: [16_992, 16_993], redfish: [443, 80], ipmi: [623], manual: [] };

export const BmcAddress = z.object({
  type: z.enum(BMC_TYPES),
  /** IP address or host name; empty for `manual`. */
  host: z.string().max(253),
  /** TCP port; absent means the type's own (AMT 16992, with TLS 16993). */
  port: z.number().int().min(1).max(65_535).optional(),
  /** Whether TLS is spoken; absent means what type and port say (AMT: 16993 yes, every other port no). Only `false` lets Redfish credentials go in the clear. */
  tls: z.boolean().optional(),
  /** Redfish: which member of Systems, where the BMC has several. */
  system: z.string().min(1).max(200).optional(),
  /** Redfish: absent means PXE. */
  boot: z.enum(BMC_BOOTS).optional(),
  /** The device's system_uuid, for a BMC that serves several machines (Redfish) or whose byte order is anybody's guess (IPMI). */
  systemUuid: MachineUuid.optional(),
  /**
   * SHA-256 of its certificate (DER). Exactly that certificate is then trusted, whoever signed it, whatever names it bears and
   * however long it is over: it ends by being replaced, and the pin with it. Absent: authorities decide.
   */
  fingerprint: z.string().regex(/^[0-9a-f]{64}$/).optional(),
});
export type BmcAddress = z.infer<typeof BmcAddress>;

/** Custom fields that metalflow reads or writes on dcim.device. */
export const CUSTOM_FIELDS = ['desired_action', 'bmc_type', 'node_class', 'system_uuid', 'root_disk', 'wipe_disks', 'lifecycle_state', 'lifecycle_url', 'tpm_ek'] as const;

export const Device = z.object({
  id: DeviceId,
  name: ShortName,
  /** NetBox device status value, as it is: a person may have set any. */
  status: z.string().max(50),
  site: z.string().max(100),
  nodeClass: z.string().max(100).nullable(),
  /** null when nothing is asked or when the value is none of ours (then `unknownAction` holds it). */
  desiredAction: z.enum(REQUESTS).nullable(),
  unknownAction: z.string().max(200).nullable(),
  systemUuid: MachineUuid.nullable(),
  rootDisk: z.string().max(200).nullable(),
  /** Serials or WWNs of the disks that may be destroyed. */
  wipeDisks: z.array(z.string().min(1).max(200)).max(64),
  /** SHA-256 of the TPM's EK public key, when declared. */
  tpmEk: z.string().max(200).nullable(),
  bmc: BmcAddress.nullable(),
  macs: z.array(Mac).max(64),
  /** Addresses without prefix length, of all interfaces but the BMC's. */
  addresses: z.array(z.string().max(64)).max(256),
  /** What only the node's own metadata tell; absent where it was not read. */
  metadata: DeviceMetadata.optional(),
  lastUpdated: Instant,
  /** The ETag of the read, for If-Match. */
  etag: z.string().max(200).nullable(),
});
export type Device = z.infer<typeof Device>;
