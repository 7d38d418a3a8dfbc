/** NetBox: the device read again, the request taken, status and journal written. No decisions. */
import { failure, isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import type { Request, RunKind } from '../domain/runs.js';
import { isOneOf, ENDED_STATES, RUNNING_STATES, STATES, type LifecycleState, type NetboxStatus } from '../domain/states.js';
import type { Device } from '../contracts/device.js';
import { runWorkflowId, type EndedRun } from '../contracts/messages.js';
import type { ClassCatalog } from '../contracts/images.js';
import type { NetboxClient, UnreadDevice } from '../contracts/netbox.js';
import type { DeviceRecord, Stores } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import { fenceRef, type RunRef } from './context.js';

/** What the lifecycle needs of a device; small, since it stays in histories. */
export interface DeviceLook {
  readonly name: string;
  readonly site: string;
  readonly nodeClass: string | null;
  readonly status: string;
  readonly desiredAction: Request | null;
  readonly unknownAction: string | null;
}

export type Looked =
  | { readonly kind: 'found'; readonly device: DeviceLook; readonly record: DeviceRecord; readonly distrust: string | null }
  /** Nothing is asked, and there is no history: not ours. Nothing was written. */
  | { readonly kind: 'not-ours' }
  | { readonly kind: 'gone'; readonly record: DeviceRecord | null }
  | { readonly kind: 'invalid'; readonly failure: Failure; readonly record: DeviceRecord | null };

/** The state in which a device without history begins; null when NetBox's status says nothing we may take for a beginning. */
export const FIRST_STATE: Readonly<Record<string, LifecycleState>> = { planned: 'planned', inventory: 'available', active: 'active', failed: 'failed' };

const lookOf = (device: Device): DeviceLook => ({ name: device.name, site: device.site, nodeClass: device.nodeClass, status: device.status, desiredAction: device.desiredAction, unknownAction: device.unknownAction });

export interface NetboxActivitiesDeps {
  readonly netbox: NetboxClient;
  readonly classes: ClassCatalog;
  readonly stores: Pick<Stores, 'fence' | 'devices' | 'refused' | 'installation' | 'runs'>;
  readonly temporal: Pick<TemporalPort, 'look'>;
  /** The link people follow from NetBox to the node. */
  readonly lifecycleUrl: (deviceId: string) => string;
  readonly crash?: CrashPoint;
}

export function createNetboxActivities({ netbox, classes, stores, temporal, lifecycleUrl, crash = noCrash }: NetboxActivitiesDeps) {
  /** Is this device metalflow's business? It has a history, or something is asked, or it is declared and ours to manage. */
  function isOurs(device: Device, record: DeviceRecord | null, first: LifecycleState | undefined): boolean {
    if (record && !isOneOf(ENDED_STATES, record.state)) return true;
    if (device.desiredAction || device.unknownAction) return true;
    return (device.nodeClass !== null || device.bmc !== null) && first !== undefined;
  }

  /** The status of an open run, in a store that never had the device: how far that run got when the former store was lost, nobody knows. */
  async function stateOfLostRun({ status }: Device, record: DeviceRecord | null): Promise<LifecycleState | undefined> {
    const isOpen = RUNNING_STATES.some((state) => STATES[state].netboxStatus === status);
    return isOpen && !record && (await stores.installation.read())?.status === 'mismatch' ? 'failed' : undefined;
  }

  /** A store that was put back from a backup has forgotten runs that Temporal knows: then it knows nothing of what the device is now. */
  async function distrustOlderStore(deviceId: string): Promise<void> {
    const next = await stores.runs.nextNumber(deviceId);
    if ((await temporal.look(runWorkflowId(deviceId, next))).kind === 'absent' || (await stores.installation.distrust(deviceId))) return;
    await stores.installation.distrustDevice(deviceId, `Temporal knows ${runWorkflowId(deviceId, next)}, and the store does not`);
  }

  /** The same, of a device that cannot be read. */
  const isUnreadOurs = ({ status, claim }: Partial<UnreadDevice>): boolean => claim === 'desired_action' || (claim !== '' && FIRST_STATE[status ?? ''] !== undefined);

  /** Nothing to begin with: no node yet, or none any more. */
  async function refuse(deviceId: string, name: string, why: Failure, record: DeviceRecord | null): Promise<Looked> {
    await stores.refused.keep(deviceId, name, why);
    return { kind: 'invalid', failure: why, record };
  }

  return {
    /** The device as NetBox has it now, registered in the store; and what the store knows of it. */
    async lookAtDevice({ deviceId }: { deviceId: string }): Promise<Looked> {
      const record = await stores.devices.find(deviceId);
      let device: Device | null;
      try {
        device = await netbox.readDevice(deviceId);
      } catch (error) {
        if (!isMetalflowError(error) || error.code !== 'device_invalid') throw error;
        if (record && !isOneOf(ENDED_STATES, record.state)) return { kind: 'invalid', failure: error.toFailure(), record };
        const unread = error.details as Partial<UnreadDevice>;
        if (isUnreadOurs(unread)) return refuse(deviceId, unread.name ?? '', error.toFailure(), record);
        await stores.refused.forget(deviceId);
        return { kind: 'not-ours' };
      }
      if (!device) {
        await stores.refused.forget(deviceId);
        return { kind: 'gone', record };
      }
      const first = FIRST_STATE[device.status] ?? (await stateOfLostRun(device, record));
      if (!isOurs(device, record, first)) {
        await stores.refused.forget(deviceId);
        return { kind: 'not-ours' };
      }
      const isNew = !record || isOneOf(ENDED_STATES, record.state);
      if (isNew && !first) {
        return refuse(deviceId, device.name, failure('device_invalid', { field: 'status', what: `is ${device.status}, and metalflow has no open history of the device; set planned, inventory, active or failed` }), record);
      }
      await stores.refused.forget(deviceId);
      const nodeClass = device.nodeClass ? await classes.find(device.nodeClass) : null;
      const registered = await stores.devices.register(device, { state: first ?? 'planned', adopted: device.status === 'active' }, { allowUnproven: nodeClass?.allowUnproven ?? false });
      crash('lookAtDevice:registered');
      if (isNew) await stores.devices.setNetboxStatus(deviceId, device.status);
      // A retired device that a person declares again begins anew; its runs stay in the store. Last of all: it is what makes the
      // device no longer new, and a try that dies before it must find all of this to do again.
      if (record && isNew) await stores.devices.setState(deviceId, { state: first!, previousState: null, hold: null, because: `declared again (${device.status})`, nextRequest: null });
      if (!isNew && !record.openRun) await distrustOlderStore(deviceId);
      const distrust = await stores.installation.distrust(deviceId);
      return { kind: 'found', device: lookOf(device), record: record && !isNew ? registered : (await stores.devices.find(deviceId))!, distrust };
    },

    /**
     * Takes the request: the row is written first; then the field is cleared, with If-Match on a read that still shows the request.
     * Once cleared, the run never reads the field again, so a reset cannot lose, double or swallow a request.
     */
    async takeRequest(input: RunRef & { kind: RunKind }): Promise<{ kind: 'taken' } | { kind: 'withdrawn'; found: string }> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      const taking = await stores.runs.taking(input.deviceId, input.run);
      if (taking === 'cleared') return { kind: 'taken' };
      if (taking === 'not-taken') {
        const device = await netbox.readDevice(input.deviceId);
        if (device?.desiredAction !== input.kind) return { kind: 'withdrawn', found: device ? (device.desiredAction ?? 'nothing') : 'no device' };
        await stores.runs.markTaken(ref);
        crash('takeRequest:marked');
      }
      await clearField(input.deviceId, input.kind, input.run);
      await stores.runs.markCleared(ref);
      return { kind: 'taken' };
    },

    /**
     * The lifecycle's status in NetBox. A status that a person changed since our last write is never overwritten, unless `insist`.
     * @param input.ended the run whose end this is: a field that asks for its kind was meant for it, and is cleared in the same write
     */
    async writeStatus(input: { deviceId: string; state: LifecycleState; status: NetboxStatus | null; insist: boolean; ended?: EndedRun | null }): Promise<{ kind: 'written' | 'gone' } | { kind: 'conflict'; failure: Failure }> {
      const record = await stores.devices.find(input.deviceId);
      for (let tries = 1; ; tries++) {
        const device = await netbox.readDevice(input.deviceId);
        if (!device) return { kind: 'gone' };
        const changed = record?.netboxStatus != null && device.status !== record.netboxStatus && device.status !== input.status;
        const taken = input.ended && device.desiredAction === input.ended.kind ? input.ended : null;
        if (changed && input.status !== null && !input.insist) {
          if (taken) await clearField(input.deviceId, taken.kind, taken.run);
          return { kind: 'conflict', failure: failure('netbox_conflict', { field: 'status', value: device.status }) };
        }
        const wrote = await netbox.writeDevice(device, {
          ...(input.status !== null && input.status !== device.status && { status: input.status }),
          fields: { lifecycle_state: input.state, lifecycle_url: lifecycleUrl(input.deviceId), ...(taken && { desired_action: null }) },
          message: `metalflow: ${input.state}${taken ? `; run ${taken.run} took the request ${taken.kind}` : ''}`,
        });
        crash('writeStatus:after-effect');
        if (wrote.kind === 'gone') return { kind: 'gone' };
        if (wrote.kind === 'written') {
          if (input.status !== null) await stores.devices.setNetboxStatus(input.deviceId, input.status);
          if (taken) await stores.devices.journal(input.deviceId, taken.run, 'netbox', `took the request ${taken.kind} at its end: NetBox still asked for it`);
          return { kind: 'written' };
        }
        if (tries === 5) throw new MetalflowError('netbox_unreachable', { why: 'the device keeps changing under our write' });
      }
    },

    /** Says once, in NetBox's journal and in ours, why the device is refused: it is no node, so nobody looks at it here. */
    async tellRefusal({ deviceId }: { deviceId: string }): Promise<void> {
      const refused = await stores.refused.find(deviceId);
      if (!refused || refused.isTold) return;
      const text = `${refused.failure.message}. What to do: ${refused.failure.hint}`;
      // Better twice than never: it counts as told only once NetBox has it.
      await netbox.addJournalEntry(deviceId, 'warning', text);
      await stores.devices.journal(deviceId, null, 'netbox', text);
      await stores.refused.told(deviceId);
    },

    /** A line in NetBox's journal and in ours. */
    async writeJournal(input: { deviceId: string; run: number | null; kind: 'info' | 'success' | 'warning' | 'danger'; text: string }): Promise<void> {
      await stores.devices.journal(input.deviceId, input.run, 'netbox', input.text);
      crash('writeJournal:after-effect');
      await netbox.addJournalEntry(input.deviceId, input.kind, input.text);
    },
  };

  /** Clears the field while it still shows this request; somebody's newer request is left alone. */
  async function clearField(deviceId: string, kind: RunKind, run: number): Promise<void> {
    for (let tries = 1; tries <= 5; tries++) {
      const device = await netbox.readDevice(deviceId);
      if (device?.desiredAction !== kind) return;
      const wrote = await netbox.writeDevice(device, { fields: { desired_action: null }, message: `metalflow: run ${run} took the request ${kind}` });
      crash('takeRequest:after-effect');
      if (wrote.kind !== 'conflict') return;
    }
    throw new MetalflowError('netbox_unreachable', { why: 'the device keeps changing under our write' });
  }
}
export type NetboxActivities = ReturnType<typeof createNetboxActivities>;
