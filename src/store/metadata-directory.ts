/** The store, seen from the metadata service: which node speaks from an address, and which of its runs it is a system of. */
import { MetalflowError } from '../domain/errors.js';
import { ENDED_STATES } from '../domain/states.js';
import type { MetadataDirectory } from '../contracts/metadata.js';
import type { Db } from './database.js';
import { readSubject } from './seed-subject.js';

export function createMetadataDirectory({ db }: { db: Db }): MetadataDirectory {
  /**
   * The run whose system the node has, or is about to get: the newest installation that came to an end, began to write, or whose boot
   * has attested. A run that failed before it touched the node must not change the instance-id of the system that still runs there.
   */
  async function runOf(deviceId: string): Promise<number | null> {
    const runs = await db.selectFrom('run').select(['number', 'plan', 'closed_at', 'destroyed', 'outcome'])
      .where('device_id', '=', deviceId).where('kind', 'in', ['provision', 'reprovision']).where('plan', 'is not', null).orderBy('number', 'desc').execute();
    const attested = await db.selectFrom('boot_attempt').select('run').where('device_id', '=', deviceId).where('attested_at', 'is not', null).execute();
    const made = runs.find((run) =>
      run.destroyed === 1 || (run.outcome !== null && (JSON.parse(run.outcome) as { end: string }).end === 'done') || (run.closed_at === null && attested.some((boot) => boot.run === run.number)));
    return (made ?? runs.find((run) => run.closed_at === null))?.number ?? null;
  }

  const guarded = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
    try {
      return await work(...args);
    } catch (error) {
      throw new MetalflowError('store_unavailable', { why: (error as Error).message }, { cause: error });
    }
  };

  const byDevice: MetadataDirectory['byDevice'] = async (deviceId, run) => readSubject(db, deviceId, run ?? (await runOf(deviceId)));
  return {
    byDevice: guarded(byDevice),
    byAddress: guarded(async (address) => {
      const owners = await db
        .selectFrom('device_address').innerJoin('device', 'device.device_id', 'device_address.device_id').select(['device.device_id', 'device.name'])
        // A device that ended has left its address to the next.
        .where('address', '=', address).where('device.state', 'not in', [...ENDED_STATES]).orderBy('device.name').execute();
      if (owners.length > 1) return { kind: 'ambiguous', devices: owners.map(({ name }) => name) };
      const subject = owners[0] ? await byDevice(owners[0].device_id, null) : null;
      return subject ? { kind: 'found', subject } : { kind: 'unknown' };
    }),
  };
}
