/** A store on a real SQLite file, with a clock and a Temporal that the test holds in its hand, and a node that boots when told to. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { AgentSession, Redemption } from '../../src/contracts/agent-desk.js';
import type { Device } from '../../src/contracts/device.js';
import type { AgentAction } from '../../src/contracts/order.js';
import type { FenceRef } from '../../src/contracts/store.js';
import type { WorkflowLook } from '../../src/contracts/temporal-port.js';
import type { LifecycleState } from '../../src/domain/states.js';
import type { RunKind } from '../../src/domain/runs.js';
import { createStore, openDatabase, type Db, type OutboxMessage, type Store } from '../../src/store/index.js';

export const UUID = '4c4c4544-0039-3010-8048-b7c04f4d4b32';
export const MAC = '02:01:48:aa:bb:0c';
export const DISKS = [{ name: 'sda', serial: 'S1', model: 'EVO', sizeBytes: 1000, bus: 'nvme' }];
export const WIPE: AgentAction = { name: 'wipe-disk', disk: { serial: 'S1' } };
export const REBOOT: AgentAction = { name: 'reboot' };

const NOON = Date.parse('2026-11-30T12:00:00.000Z');

export const deviceOf = (extra: Partial<Device> = {}): Device => ({
  id: '7', name: 'node-7', status: 'planned', site: 'lab', nodeClass: 'talos', desiredAction: null, unknownAction: null, systemUuid: UUID, rootDisk: null, wipeDisks: ['S1'], tpmEk: null,
  bmc: { type: 'amt', host: '10.0.0.7' }, macs: [MAC], addresses: ['10.0.1.7'], lastUpdated: '2026-11-30T10:00:00.000000Z', etag: '"1"', ...extra,
});

/** What a boot of the node left behind. */
export interface Booted {
  readonly bootAttempt: string;
  readonly token: string;
  readonly session: AgentSession;
  readonly installCode: string | null;
}

export class StoreBench {
  /** By workflow id; `unavailable` makes Temporal not answer. */
  readonly looks = new Map<string, WorkflowLook>();
  unavailable = false;
  woken = 0;
  #at = NOON;
  #temporalRuns = 0;
  #tables: readonly string[] | null = null;
  /** The MAC the node boots from. */
  mac = MAC;

  private constructor(readonly db: Db, readonly dir: string) {}
  readonly store: Store = null!;

  static async open(): Promise<StoreBench> {
    const dir = await mkdtemp(join(tmpdir(), 'metalflow-store-'));
    const bench = new StoreBench(await openDatabase(`sqlite:${join(dir, 'store.db')}`), dir);
    // What survives a power cut is not what these tests are about, and waiting for the disk is most of their time.
    await sql`pragma synchronous = off`.execute(bench.db);
    const look = async (workflowId: string): Promise<WorkflowLook> => {
      if (bench.unavailable) throw new Error('Temporal does not answer');
      return bench.looks.get(workflowId) ?? { kind: 'absent' };
    };
    Object.assign(bench, { store: createStore({ db: bench.db, temporal: { look }, now: () => bench.now(), woken: () => void bench.woken++ }) });
    return bench;
  }

  /** For `beforeEach`: everything forgotten, the installation confirmed, device 7 declared. Opening a file anew would take most of the time. */
  async clean(): Promise<void> {
    this.#tables ??= (await this.db.introspection.getTables()).map((table) => table.name);
    for (const name of this.#tables) await sql`delete from ${sql.table(name)}`.execute(this.db);
    this.looks.clear();
    this.unavailable = false;
    this.woken = 0;
    this.mac = MAC;
    this.#at = NOON;
    await this.store.installation.begin('installation-a');
    await this.store.installation.confirm();
    await this.declare();
  }

  async close(): Promise<void> {
    await this.store.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  now(): Date {
    return new Date(this.#at);
  }
  pass(seconds: number): void {
    this.#at += seconds * 1000;
  }

  async declare(extra: Partial<Device> = {}, state: LifecycleState = 'planned'): Promise<Device> {
    const device = deviceOf(extra);
    await this.store.devices.register(device, { state, adopted: false });
    return device;
  }

  /** For a test with a clock of its own. */
  setNow(at: number): void {
    this.#at = at;
  }

  /** A new run with its fence held by a new Temporal run. */
  async begin(kind: RunKind = 'provision', deviceId = '7'): Promise<FenceRef> {
    const { run, workflowId } = await this.store.runs.open(deviceId, kind, { asked: { how: 'netbox' }, intake: null });
    return this.reset({ deviceId, run, workflowId, temporalRunId: '' });
  }

  /** A reset in Temporal: the same workflow id, a new Temporal run; its first activity takes the fence. */
  async reset(of: FenceRef): Promise<FenceRef> {
    const ref = this.newTemporalRun(of);
    await this.store.fence.enter(ref);
    return ref;
  }

  newTemporalRun(of: FenceRef): FenceRef {
    const temporalRunId = `temporal-run-${++this.#temporalRuns}`;
    this.looks.set(of.workflowId, { kind: 'running', runId: temporalRunId });
    return { ...of, temporalRunId };
  }

  /** Attempt opened, boot file served, attested. */
  async boot(ref: FenceRef): Promise<Booted> {
    const { bootAttempt } = await this.store.attempts.open(ref);
    await this.store.boot.recordBootSeen(bootAttempt);
    return { bootAttempt, ...(await this.attest()) };
  }

  async attest(): Promise<Omit<Booted, 'bootAttempt'>> {
    const { attestation, orderDesk } = this.store;
    const opened = await attestation.openChallenge({ systemUuid: UUID, bootMac: this.mac, akPublic: 'ak', ekPublic: null, ekCertificate: null });
    const challenge = (await attestation.takeChallenge(opened.id))!;
    const node = await attestation.findNode(this.mac);
    const report = { version: 1 as const, nonce: challenge.nonce, systemUuid: UUID, bootMac: this.mac, lldpFrame: null, disks: DISKS, agent: { name: 'agent', version: '1' } };
    const answer = await attestation.record({ node, challenge, report, verdict: { accepted: true, reason: null, proof: 'tpm', akThumbprint: 'ak-1', neighbour: null }, sender: '10.0.1.7' });
    return { token: answer!.token, installCode: answer!.installCode, session: (await orderDesk.session(answer!.token))! };
  }

  /** An installed system fetches its seed with the code. */
  redeem(code: string, sender = '10.0.1.7', systemUuid = UUID): Promise<Redemption> {
    return this.store.seeds.redeem({ code, systemUuid, sender });
  }

  /** The node attests and is refused. */
  async attestRefused(reason: string, disks: readonly (typeof DISKS)[number][] | null = null): Promise<void> {
    const { attestation } = this.store;
    const challenge = await attestation.openChallenge({ systemUuid: UUID, bootMac: this.mac, akPublic: 'ak', ekPublic: null, ekCertificate: null });
    const report = disks && { version: 1 as const, nonce: challenge.nonce, systemUuid: UUID, bootMac: this.mac, lldpFrame: null, disks: [...disks], agent: { name: 'agent', version: '1' } };
    await attestation.record({ node: await attestation.findNode(this.mac), challenge, report, verdict: { accepted: false, reason, proof: 'unproven', akThumbprint: 'ak-2', neighbour: null }, sender: '10.0.1.7' });
  }

  post(ref: FenceRef, bootAttempt: string, extra: Partial<Parameters<Store['orders']['post']>[1]> = {}): Promise<{ orderId: string; grant: number }> {
    return this.store.orders.post(ref, { bootAttempt, title: 'wipe', action: WIPE, destructive: true, timeoutSeconds: 600, queueSeconds: 300, grantUnknown: null, ...extra });
  }

  /** Every message still to be delivered, in order; they count as delivered afterwards. */
  async mail(): Promise<OutboxMessage[]> {
    const rows = await this.store.outbox.due(1000);
    for (const { id } of rows) await this.store.outbox.delivered(id, 'delivered');
    return rows.map((row) => row.message);
  }

  /** Journal texts, oldest first. */
  async journal(deviceId = '7'): Promise<string[]> {
    return (await this.store.nodes.journal(deviceId, 1000)).map((line) => line.text).reverse();
  }
}
