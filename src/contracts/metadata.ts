/** What the metadata service may say of a node to the node itself. */
export interface MetadataSubject {
  readonly nodeName: string;
  /** `<node uuid>-<run number>`, as in the node's seed. */
  readonly instanceId: string;
  /** Without prefix length. */
  readonly addresses: readonly string[];
}

/**
 * The node behind a sender's address (IPv4 text, never `::ffff:`); null when no node is known there.
 * @throws store_unavailable
 */
export type MetadataDirectory = (address: string) => Promise<MetadataSubject | null>;
