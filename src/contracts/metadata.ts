/** What a node may be told about itself: the facts NetBox and its class hold, and how they are looked up. */
import { z } from 'zod';
import type { SeedSubject } from './agent-desk.js';
import { Mac } from './primitives.js';

/** One line of authorized_keys: type, base64, an optional comment (sshd(8), AUTHORIZED_KEYS FILE FORMAT; without options). */
export const SshKey = z.string().trim().max(8000).regex(/^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}(?: [^\r\n]*)?$/, 'is no public key as in authorized_keys (type, base64, comment)');

/** `required`: an address alone shows nothing without an IMDSv2 token. */
export const METADATA_TOKEN_POLICIES = ['optional', 'required'] as const;
export type MetadataTokenPolicy = (typeof METADATA_TOKEN_POLICIES)[number];

/** `secret:<name>`: the file `user-data/<name>` of the secrets folder. The text itself never stands in NetBox or a class. */
export const SecretReference = z.string().regex(/^secret:[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must be secret:<name>, the name of a file in user-data/ of the secrets folder');

/** An interface of the host (never the BMC's) that has a MAC. */
export const NodeInterface = z.object({
  name: z.string().max(64),
  mac: Mac,
  /** With prefix length (`192.0.2.10/24`); only addresses that are this node's alone: no VIP, no anycast. */
  addresses: z.array(z.string().max(64)).max(64),
});
export type NodeInterface = z.infer<typeof NodeInterface>;

/** What NetBox has no field for; `metalflow.network` of the config context. Without it nobody knows the way out, and no static network is made up. */
export const NetworkStatement = z.strictObject({
  /** Default gateways; one counts for the interface in whose network it lies. An empty list says that there is none. */
  gateways: z.array(z.union([z.ipv4(), z.ipv6()])).max(8),
  nameservers: z.array(z.union([z.ipv4(), z.ipv6()])).max(8).default([]),
  search: z.array(z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/, 'is no domain')).max(8).default([]),
});
export type NetworkStatement = z.infer<typeof NetworkStatement>;

/** Of a NetBox device, as it was last read. */
export const DeviceMetadata = z.object({
  tags: z.array(z.string().max(100)).max(256),
  interfaces: z.array(NodeInterface).max(64),
  /** primary_ip4 and primary_ip6, without prefix length. */
  primary: z.array(z.string().max(64)).max(2),
  /** `metalflow.ssh_keys` of the config context. */
  sshKeys: z.array(SshKey).max(64),
  /** `metalflow.user_data` of the config context. */
  userData: SecretReference.nullable(),
  network: NetworkStatement.nullable(),
});
export type DeviceMetadata = z.infer<typeof DeviceMetadata>;

/** The facts of one node: what its seed is rendered from, and what only the metadata tell. */
export interface MetadataSubject extends SeedSubject {
  readonly tags: readonly string[];
  /** The interfaces whether or not a static network is stated. */
  readonly interfaces: readonly NodeInterface[];
  /** Without prefix length, NetBox's primary ones. */
  readonly primary: readonly string[];
  /** SHA-256 of the image its run pinned. */
  readonly imageSha256: string | null;
}

export type AddressLookup =
  | { readonly kind: 'found'; readonly subject: MetadataSubject }
  | { readonly kind: 'unknown' }
  /** Several devices declare the address: nobody is guessed. Names for the log, never for the asker. */
  | { readonly kind: 'ambiguous'; readonly devices: readonly string[] };

/** Nodes as the metadata service finds them. Both throw store_unavailable. */
export interface MetadataDirectory {
  /** @param address IPv4 or IPv6 text, never `::ffff:` */
  byAddress(address: string): Promise<AddressLookup>;
  /** @param run null for the run whose system the node has, or is about to get */
  byDevice(deviceId: string, run: number | null): Promise<MetadataSubject | null>;
}
