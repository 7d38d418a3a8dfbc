/** The lifecycle's bookkeeping in the store, its adoption, and the reconcile. */
import { isMetalflowError, type Failure } from '../domain/errors.js';
import type { Request } from '../domain/runs.js';
import type { LifecycleState } from '../domain/states.js';
import { lifecycleId, SIGNALS } from '../contracts/messages.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { DeviceRecord, Stores } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { createComparison } from './compare-devices.js';
import { heartbeat } from './context.js';
import { FIRST_STATE } from './netbox.js';
import { firstUnknownRun } from './run-numbers.js';

export interface LifecycleActivitiesDeps {
  readonly stores: Pick<Stores, 'devices' | 'installation' | 'runs'>;
  readonly temporal: TemporalPort;
  readonly netbox: NetboxClient;
  readonly trySeconds: number;
  /** Reads the installation id Temporal holds, starting the installation workflow with ours when there is none. */
  readonly linkInstallation: (ours: string) => Promise<string>;
}

const RECONCILE_OVERLAP_MS = 120_000;

export function createLifecycleActivities({ stores, temporal, netbox, trySeconds, linkInstallation }: LifecycleActivitiesDeps) {
  /** What the last reconcile of this process read. Another process, or a new one, tells it once more. */
  let told: ReadonlyMap<string, string> = new Map();
  const compareNext = createComparison({ devices: stores.devices, netbox });
  /** One that completed had looked, and found nothing to live for: a request on a retired device starts no lifecycle at each reconcile. */
  async function wasHeard(deviceId: string): Promise<boolean> {
    const look = await temporal.look(lifecycleId(deviceId));
    return look.kind === 'running' || (look.kind === 'closed' && look.how === 'completed');
  }
  /** A status that is not the store's was written by the store that was lost, or by a person: either knows better. */
  async function takeStateOfNetbox({ deviceId, netboxStatus }: DeviceRecord): Promise<void> {
    const device = await netbox.readDevice(deviceId).catch((error: unknown) => {
      if (isMetalflowError(error) && error.code === 'device_invalid') return null;
      throw error;
    });
    const state = device && device.status !== netboxStatus ? FIRST_STATE[device.status] : undefined;
    if (!device || !state) return;
    await stores.devices.setState(deviceId, { state, previousState: null, hold: null, because: `adopted, and NetBox says ${device.status}` });
    await stores.devices.setNetboxStatus(deviceId, device.status);
  }

  return {
    /** What the store knows, before NetBox is asked: an open run is taken up even while NetBox is away. And how long a try may take here. */
    async recallDevice({ deviceId }: { deviceId: string }): Promise<{ record: DeviceRecord | null; distrust: string | null; trySeconds?: number }> {
      const record = await stores.devices.find(deviceId);
      return { record, distrust: record ? await stores.installation.distrust(deviceId) : null, trySeconds };
    },

    async keepState(input: { deviceId: string; state: LifecycleState; previousState: LifecycleState | null; hold: Failure | null; because: string; nextRequest: Request | null; adopted?: boolean; by?: string }): Promise<void> {
      await stores.devices.setState(input.deviceId, input);
      if (input.by) await stores.devices.journal(input.deviceId, null, 'verb', input.because, input.by);
    },

    /** A person said that store and machine belong together. What Temporal knows is not begun again, and NetBox says what the device is. */
    async adoptDevice(input: { deviceId: string; by: string }): Promise<DeviceRecord> {
      const ours = await stores.installation.read();
      if (ours?.status === 'mismatch') await stores.installation.relink(await linkInstallation(ours.id));
      const next = await stores.runs.nextNumber(input.deviceId);
      await stores.runs.skipTo(input.deviceId, await firstUnknownRun(temporal, input.deviceId, next));
      const record = (await stores.devices.find(input.deviceId))!;
      if (!record.openRun) await takeStateOfNetbox(record);
      await stores.installation.adopt(input.deviceId, input.by);
      return (await stores.devices.find(input.deviceId))!;
    },

    /**
     * A person said that the status in NetBox stands. It says what a device without an open run is, where a device may begin with it;
     * any other is left as it is until the state changes next.
     */
    async letNetboxStand({ deviceId, because, by }: { deviceId: string; because: string; by: string }): Promise<DeviceRecord> {
      const record = (await stores.devices.find(deviceId))!;
      const device = await netbox.readDevice(deviceId);
      const state = device && !record.openRun ? FIRST_STATE[device.status] : undefined;
      if (state) await stores.devices.setState(deviceId, { state, previousState: null, hold: null, because: `the status in NetBox stands: ${device!.status}`, ...(state === 'active' && { adopted: true }) });
      await stores.devices.setNetboxStatus(deviceId, state ? device!.status : null);
      await stores.devices.journal(deviceId, null, 'verb', `${because} (${device ? `${device.status} stands` : 'NetBox has no device'})`, by);
      return (await stores.devices.find(deviceId))!;
    },

    /** Reads NetBox for what a lost webhook left, and restarts lifecycles that are missing while the store shows work. */
    async reconcile(): Promise<{ signalled: number; restarted: number }> {
      const mark = await stores.devices.reconcileMark();
      // A transaction that took long commits with an older last_updated than one that was read already.
      const since = mark && new Date(Date.parse(mark) - RECONCILE_OVERLAP_MS).toISOString();
      const { devices, newest } = await netbox.listChanged(since);
      let signalled = 0;
      async function tell(deviceId: string): Promise<void> {
        await temporal.signalLifecycle(deviceId, SIGNALS.deviceChanged.name, { source: 'reconcile' });
        heartbeat({ signalled: ++signalled });
      }
      for (const { id: deviceId, lastUpdated } of devices) {
        // What overlaps was told before. Telling it for ever would fill histories, and a held run takes 10,000 signals at most.
        if (told.get(deviceId) === lastUpdated && (await wasHeard(deviceId))) continue;
        await tell(deviceId);
      }
      told = new Map(devices.map(({ id, lastUpdated }) => [id, lastUpdated]));
      const restarted = await restartMissingLifecycles({ stores, temporal }, (count) => heartbeat({ restarted: count }));
      if (newest) await stores.devices.setReconcileMark(newest);
      await compareNext(tell);
      return { signalled, restarted };
    },
  };
}
/** Starts the lifecycles that are missing while the store shows a run, a lease or an end that nobody settled. @returns how many */
export async function restartMissingLifecycles({ stores, temporal }: { stores: { devices: Pick<Stores['devices'], 'withOpenWork'> }; temporal: Pick<TemporalPort, 'look' | 'signalLifecycle'> }, onRestart: (count: number) => void = () => undefined): Promise<number> {
  let restarted = 0;
  for (const deviceId of await stores.devices.withOpenWork()) {
    if ((await temporal.look(lifecycleId(deviceId))).kind === 'running') continue;
    await temporal.signalLifecycle(deviceId, SIGNALS.deviceChanged.name, { source: 'reconcile' });
    onRestart(++restarted);
  }
  return restarted;
}
export type LifecycleActivities = ReturnType<typeof createLifecycleActivities>;
