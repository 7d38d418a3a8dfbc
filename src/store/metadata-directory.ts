/** The store, seen from the metadata service: which node speaks from an address. */
import { MetalflowError } from '../domain/errors.js';
import type { MetadataDirectory } from '../contracts/metadata.js';
import type { Db } from './database.js';

export function createMetadataDirectory({ db }: { db: Db }): MetadataDirectory {
  return async (address) => {
    try {
      const owners = await db.selectFrom('device_address').select('device_id').where('address', '=', address).execute();
      // Two devices with one address: neither may be shown the other's data.
      if (owners.length !== 1) return null;
      const deviceId = owners[0]!.device_id;
      const device = await db.selectFrom('device').select(['name', 'system_uuid', 'next_run']).where('device_id', '=', deviceId).executeTakeFirst();
      if (!device) return null;
      const installed = await db.selectFrom('run').select('number').where('device_id', '=', deviceId).where('kind', 'in', ['provision', 'reprovision']).orderBy('number', 'desc').executeTakeFirst();
      const addresses = await db.selectFrom('device_address').select('address').where('device_id', '=', deviceId).orderBy('address').execute();
      return { nodeName: device.name, instanceId: `${device.system_uuid ?? deviceId}-${installed?.number ?? 0}`, addresses: addresses.map((row) => row.address) };
    } catch (error) {
      throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
    }
  };
}
