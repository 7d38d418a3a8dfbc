/** Devices: what NetBox says of them, the state of their lifecycle, and what we last wrote back. */
import type { Failure } from '../domain/errors.js';
import type { PowerWord } from '../domain/power.js';
import type { Request, RunKind } from '../domain/runs.js';
import { ENDED_STATES, RUNNING_STATES, type LifecycleState } from '../domain/states.js';
import type { BmcAddress, Device } from '../contracts/device.js';
import type { RunOutcome } from '../contracts/messages.js';
import type { DeviceRecord, DeviceStore } from '../contracts/store.js';
import { lockedTransaction, type Db, type Tx } from './database.js';
import { epochForNewDevice } from './installation.js';
import { appendJournal } from './journal.js';
import { keepPowerOfRun } from './power-watch.js';
import { tally } from './tally.js';

/** How far the reconcile has come: rows of `hook` that are no device's. */
const MARK_READ = 'netbox-reconcile';
const MARK_COMPARED = 'netbox-compared';

/** What NetBox says of a device, as its row keeps it. */
const factsOf = (device: Device) => ({
  name: device.name, site: device.site, node_class: device.nodeClass, system_uuid: device.systemUuid, tpm_ek: device.tpmEk,
  bmc: device.bmc && JSON.stringify(device.bmc), metadata: device.metadata ? JSON.stringify(device.metadata) : null,
});
const isSameSet = (one: readonly string[], other: readonly string[]): boolean => {
  const set = new Set(other);
  return new Set(one).size === set.size && one.every((item) => set.has(item));
};

export function createDeviceStore({ db, now }: { db: Db; now: () => Date }): DeviceStore {
  const find = (deviceId: string): Promise<DeviceRecord | null> => readDevice(db, deviceId);
  async function readMark(name: string): Promise<string | null> {
    const row = await db.selectFrom('hook').select('last_updated').where('device_id', '=', name).executeTakeFirst();
    return row?.last_updated ?? null;
  }
  async function setMark(name: string, mark: string): Promise<void> {
    const values = { last_updated: mark, digest: '' };
    await db.insertInto('hook').values({ device_id: name, ...values }).onConflict((c) => c.column('device_id').doUpdateSet(values)).execute();
  }
  return {
    find,
    register: (device, initial, ofClass = { allowUnproven: false }) =>
      lockedTransaction(db, device.id, async (tx) => {
        const facts = { ...factsOf(device), allow_unproven: ofClass.allowUnproven ? 1 : 0 };
        await tx
          .insertInto('device')
          .values({
            device_id: device.id, ...facts, state: initial.state, state_since: now().toISOString(), previous_state: null, hold: null, adopted: initial.adopted ? 1 : 0,
            netbox_status: device.status, next_request: null, power: 'unknown', power_at: null, bmc_seen_at: null, power_told: null, power_drift: null, proof: null, approved_uuid: null, next_run: 1, open_run: null,
            adopted_epoch: await epochForNewDevice(tx),
          })
          .onConflict((c) => c.column('device_id').doUpdateSet(facts))
          .execute();
        await replaceInterfaces(tx, device);
        return (await readDevice(tx, device.id))!;
      }),
    async isAsRegistered(device) {
      const row = await db.selectFrom('device').selectAll().where('device_id', '=', device.id).executeTakeFirst();
      if (!row) return false;
      const macs = await db.selectFrom('device_mac').select('mac').where('device_id', '=', device.id).execute();
      const addresses = await db.selectFrom('device_address').select('address').where('device_id', '=', device.id).execute();
      return Object.entries(factsOf(device)).every(([name, value]) => row[name as keyof typeof row] === value)
        && isSameSet(macs.map(({ mac }) => mac), device.macs) && isSameSet(addresses.map(({ address }) => address), device.addresses);
    },
    async nextToCompare(count) {
      const after = (await readMark(MARK_COMPARED)) ?? '';
      const rows = await db
        .selectFrom(db.selectFrom('device').select('device_id').where('state', 'not in', [...ENDED_STATES]).union(db.selectFrom('refused_device').select('device_id')).as('known'))
        .select('device_id')
        .where('device_id', '>', after)
        .orderBy('device_id')
        .limit(count)
        .execute();
      // The end is reached, and the next begins anew.
      await setMark(MARK_COMPARED, rows.length < count ? '' : rows.at(-1)!.device_id);
      return rows.map(({ device_id }) => device_id);
    },
    setState: (deviceId, change) =>
      lockedTransaction(db, deviceId, async (tx) => {
        const before = await tx.selectFrom('device').select(['state', 'hold']).where('device_id', '=', deviceId).executeTakeFirst();
        if (!before) return;
        const hold = change.hold ? JSON.stringify(change.hold) : null;
        const moved = before.state !== change.state;
        await tx
          .updateTable('device')
          .set({
            state: change.state, previous_state: change.previousState, hold,
            ...(moved && { state_since: now().toISOString() }),
            ...(change.nextRequest !== undefined && { next_request: change.nextRequest }),
            ...(change.adopted !== undefined && { adopted: change.adopted ? 1 : 0 }),
          })
          .where('device_id', '=', deviceId)
          .execute();
        if (hold && hold !== before.hold) await tally(tx, { what: 'held', labels: { code: change.hold!.code } });
        if (moved) await appendJournal(tx, now(), { deviceId, run: null, kind: 'state', text: `${before.state} → ${change.state}: ${change.because}` });
        else if (hold && hold !== before.hold) await appendJournal(tx, now(), { deviceId, run: null, kind: 'hold', text: change.hold!.message });
      }),
    async setNetboxStatus(deviceId, status) {
      await db.updateTable('device').set({ netbox_status: status }).where('device_id', '=', deviceId).execute();
    },
    async setPower(deviceId, power) {
      await keepPowerOfRun(db, now(), deviceId, power);
    },
    async atBmc(hosts) {
      const wanted = new Set(hosts.map((host) => host.toLowerCase()));
      const rows = await db.selectFrom('device').select(['name', 'bmc']).where('bmc', 'is not', null).where('state', 'not in', [...ENDED_STATES]).orderBy('name').execute();
      return rows.map(({ name, bmc }) => ({ name, bmc: JSON.parse(bmc!) as BmcAddress })).filter(({ bmc }) => wanted.has(bmc.host.toLowerCase()));
    },
    approveUuid: (deviceId, uuid, by) =>
      lockedTransaction(db, deviceId, async (tx) => {
        await tx.updateTable('device').set({ approved_uuid: uuid }).where('device_id', '=', deviceId).execute();
        await appendJournal(tx, now(), { deviceId, run: null, kind: 'verb', text: `the machine behind the BMC was approved as this device (UUID ${uuid})`, by });
      }),
    async withOpenWork() {
      // A state of an open run without one: the run wrote its end, and nobody has settled it yet. A hold waits for a verb, and somebody has to hear it.
      const open = await db.selectFrom('device').select('device_id').where((eb) => eb.or([eb('open_run', 'is not', null), eb('hold', 'is not', null), eb('state', 'in', [...RUNNING_STATES])])).execute();
      const leased = await db.selectFrom('permission').select('device_id').execute();
      return [...new Set([...open, ...leased].map((row) => row.device_id))];
    },
    async journal(deviceId, run, kind, text, by) {
      await appendJournal(db, now(), { deviceId, run, kind, text, ...(by && { by }) });
    },
    reconcileMark: () => readMark(MARK_READ),
    setReconcileMark: (mark) => setMark(MARK_READ, mark),
  };
}

async function replaceInterfaces(tx: Tx, device: Device): Promise<void> {
  await tx.deleteFrom('device_mac').where('device_id', '=', device.id).execute();
  for (const mac of device.macs) {
    // A MAC that moved to another device belongs to the one read last.
    await tx.insertInto('device_mac').values({ mac, device_id: device.id }).onConflict((c) => c.column('mac').doUpdateSet({ device_id: device.id })).execute();
  }
  await tx.deleteFrom('device_address').where('device_id', '=', device.id).execute();
  for (const address of device.addresses) await tx.insertInto('device_address').values({ address, device_id: device.id }).onConflict((c) => c.doNothing()).execute();
}

async function readDevice(db: Db | Tx, deviceId: string): Promise<DeviceRecord | null> {
  const row = await db.selectFrom('device').selectAll().where('device_id', '=', deviceId).executeTakeFirst();
  if (!row) return null;
  const open = row.open_run === null ? null : await db.selectFrom('run').select(['number', 'kind', 'workflow_id']).where('device_id', '=', deviceId).where('number', '=', row.open_run).executeTakeFirst();
  const last = await db.selectFrom('run').select(['number', 'kind', 'outcome', 'closed_at']).where('device_id', '=', deviceId).where('closed_at', 'is not', null).orderBy('number', 'desc').executeTakeFirst();
  return {
    deviceId: row.device_id, name: row.name, site: row.site, nodeClass: row.node_class,
    state: row.state as LifecycleState, stateSince: row.state_since, previousState: row.previous_state as LifecycleState | null,
    hold: row.hold ? (JSON.parse(row.hold) as Failure) : null, adopted: row.adopted === 1, netboxStatus: row.netbox_status,
    nextRequest: row.next_request as Request | null, approvedUuid: row.approved_uuid, power: row.power as PowerWord,
    openRun: open ? { run: open.number, kind: open.kind as RunKind, workflowId: open.workflow_id } : null,
    lastRun: last ? { run: last.number, kind: last.kind as RunKind, outcome: JSON.parse(last.outcome!) as RunOutcome, at: last.closed_at! } : null,
  };
}
