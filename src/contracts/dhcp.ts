/** What a DHCP server has to know of the devices that may boot from the network. */

/** A device that is not at its life's end, with the MACs NetBox declares. */
export interface NetbootDevice {
  readonly deviceId: string;
  readonly name: string;
  /** As `domain/mac.ts` writes them. */
  readonly macs: readonly string[];
}

/** The store, seen from the printed configurations. @throws store_unavailable */
export interface NetbootDevices {
  list(): Promise<NetbootDevice[]>;
}
