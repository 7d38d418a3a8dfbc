/** What a node's seed and its metadata are made of: the device as it was last read, and the plan its run pinned. One reading for both. */
import type { SeedSubject } from '../contracts/agent-desk.js';
import { DeviceMetadata, type MetadataSubject } from '../contracts/metadata.js';
import { RunPlan } from '../contracts/plan.js';
import type { Db } from './database.js';

const NOTHING: DeviceMetadata = { tags: [], interfaces: [], primary: [], sshKeys: [], userData: null, network: null };

/**
 * @param run null for a device that no run of ours installed: what NetBox says is all there is
 * @returns null when there is no such device, or no plan of such a run
 */
export async function readSubject(db: Db, deviceId: string, run: number | null): Promise<MetadataSubject | null> {
  const device = await db.selectFrom('device').selectAll().where('device_id', '=', deviceId).executeTakeFirst();
  if (!device) return null;
  const row = run === null ? null : await db.selectFrom('run').select('plan').where('device_id', '=', deviceId).where('number', '=', run).executeTakeFirst();
  const plan = row?.plan ? RunPlan.parse(JSON.parse(row.plan)) : null;
  if (run !== null && !plan) return null;
  const addresses = await db.selectFrom('device_address').select('address').where('device_id', '=', deviceId).orderBy('address').execute();
  const macs = await db.selectFrom('device_mac').select('mac').where('device_id', '=', deviceId).orderBy('mac').execute();
  const told = device.metadata ? DeviceMetadata.parse(JSON.parse(device.metadata)) : NOTHING;
  // A run that installs has a UUID: planning refuses a device without one.
  const systemUuid = plan?.systemUuid ?? device.system_uuid ?? '';
  const seed: SeedSubject = {
    deviceId, nodeName: device.name, systemUuid, run: run ?? 0, instanceId: `${systemUuid || deviceId}-${run ?? 0}`, site: device.site,
    nodeClass: plan?.nodeClass ?? device.node_class ?? '', payload: plan?.payload ?? '',
    seed: plan?.seed ?? null, phoneHome: plan?.confirmBy === 'phone-home', addresses: addresses.map(({ address }) => address), macs: macs.map(({ mac }) => mac),
    // The device is closer to the node than its class.
    userData: told.userData ?? plan?.userData ?? null,
    sshKeys: [...new Set([...(plan?.sshKeys ?? []), ...told.sshKeys])],
    network: told.network && { interfaces: told.interfaces, statement: told.network },
  };
  return { ...seed, tags: told.tags, interfaces: told.interfaces, primary: told.primary, imageSha256: plan?.image?.sha256 ?? null };
}
