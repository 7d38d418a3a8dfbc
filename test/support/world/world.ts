/**
 * A whole world for one test: NetBox stand-in, a house that is a real process, simulated machines with AMT endpoints, and a
 * Temporal namespace. Everything talks over sockets; the house alone is killed and restarted.
 */
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { LimitName } from '../../../src/domain/limits.js';
import type { Payload, Request } from '../../../src/domain/runs.js';
import { STATES, type LifecycleState } from '../../../src/domain/states.js';
import { lifecycleId, runWorkflowId, STATE_QUERY, type LifecycleView, type RunView } from '../../../src/contracts/messages.js';
import type { NodeRow, RunRow } from '../../../src/contracts/operator.js';
import type { NodeClass } from '../../../src/contracts/node-class.js';
import { startSimulatedMachine, type SimulatedMachine } from '../../../src/main/simulated.js';
import type { TemporalClient } from '../../../src/main/temporal.js';
import type { FieldSet } from '../../../src/simulator/netbox-stand-in/custom-fields.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { silentLogger } from '../../../src/telemetry/log.js';
import { openDatabase, type Db } from '../../../src/store/index.js';
import { startHouseProcess, type HouseProcess } from './house.js';
import type { TestTemporal } from './temporal.js';
import { reservePort, reservePorts } from '../ports.js';
import { until } from '../until.js';

const AMT = { username: 'admin', password: 'P@ssw0rd1' } as const;
const IMAGES = join(process.cwd(), 'demo', 'images');

export type WorldLimits = Partial<Record<LimitName, number>>;

/** Pauses are short. Limits only end what would never end: a test that sees one pass gives its world a shorter one, and no other. */
const LIMITS: WorldLimits = {
  powerPoll: 0.1, powerReadsApart: 0.3, bmcRecheck: 0.3, permissionRenewal: 2, permissionLease: 60,
  poweringOff: 30, poweringOn: 30, settling: 10, awaitingBoot: 90, awaitingAttestation: 90, confirmingSeed: 90, confirmingOff: 60, agentSilence: 60, orderQueued: 90, bmcLock: 30, activityTry: 20, taking: 60, arming: 60, rebooting: 90,
};
/** Of a test that waits for a node: many times what a laden machine needs. */
const PATIENCE_SECONDS = 300;

export interface WorldOptions {
  readonly limits?: WorldLimits;
  /** Changes of classes by name. */
  readonly classes?: Readonly<Record<string, Partial<NodeClass>>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Custom fields of the site, where they are not as metalflow asks for. */
  readonly netboxFields?: FieldSet;
}

export interface WorldNode {
  readonly name: string;
  readonly deviceId: string;
  readonly machine: SimulatedMachine;
  readonly serial: string;
  readonly mac: string;
  readonly systemUuid: string;
}

export interface World {
  readonly dir: string;
  readonly netbox: NetboxStandIn;
  readonly temporal: TemporalClient;
  readonly namespace: string;
  readonly token: string;
  /** What nobody may find anywhere. */
  readonly secrets: { readonly bmcPassword: string; readonly netboxToken: string; readonly webhookSecret: string; readonly operatorToken: string };
  /** The house's settings, for roles that a test starts one by one. */
  readonly env: Readonly<Record<string, string>>;
  house: HouseProcess;
  /** Other limits from the next start on; a run keeps those that it was opened with. */
  limit(limits: WorldLimits): void;
  /** Starts the house (again) over the same data and ports. */
  start(env?: Readonly<Record<string, string>>): Promise<HouseProcess>;
  addNode(options?: { payload?: Payload; name?: string; status?: string; customFields?: Record<string, unknown>; diskBytes?: number; secondDisk?: boolean }): Promise<WorldNode>;
  /** As a person does it in NetBox. */
  ask(node: WorldNode, request: Request | null): void;
  node(node: WorldNode): Promise<NodeRow>;
  run(node: WorldNode, run: number): Promise<RunRow>;
  api(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>;
  lifecycleView(node: WorldNode): Promise<LifecycleView>;
  runView(node: WorldNode, run: number): Promise<RunView>;
  /** Polls until `seen` gives something; throws with what it saw last after `seconds`. */
  until<T>(what: string, look: () => Promise<T | null | undefined | false> | T | null | undefined | false, seconds?: number): Promise<T>;
  /** In the state, with no run open that leads there, and NetBox told. */
  untilState(node: WorldNode, state: LifecycleState, seconds?: number): Promise<NodeRow>;
  /** The store, read by the test itself. */
  db(): Promise<Db>;
  houseLog(): string;
  close(): Promise<void>;
}

export async function createWorld(test: TestTemporal, options: WorldOptions = {}): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-world-'));
  const at = (...parts: string[]): string => join(dir, ...parts);
  for (const folder of ['secrets', 'assets/images', 'tftp', 'nodes']) mkdirSync(at(folder), { recursive: true });
  const token = randomBytes(24).toString('base64url');
  const secret = randomBytes(16).toString('hex');
  writeFileSync(at('secrets', 'bmc-amt.json'), JSON.stringify(AMT));
  writeFileSync(at('secrets', 'operator-tokens.json'), JSON.stringify({ tokens: [{ name: 'tester', role: 'approver', sha256: createHash('sha256').update(token).digest('hex') }] }));
  const rows = JSON.parse(readFileSync(join(IMAGES, 'index.json'), 'utf8')) as { payload: Payload; file: string; sha256: string; sizeBytes: number; compression: 'gzip'; unpackedBytes: number; contentDigest: string }[];
  for (const { file } of rows) cpSync(join(IMAGES, file), at('assets', 'images', file));
  // Firmware of the simulated node takes any bytes; these say what they are.
  for (const name of ['vmlinuz-x86_64', 'initramfs-x86_64']) writeFileSync(at('assets', name), `placeholder for ${name}\n`.repeat(64));
  for (const name of ['ipxe.efi', 'snponly.efi', 'undionly.kpxe']) writeFileSync(at('tftp', name), `placeholder for ${name}\n`.repeat(400));
  const classes = rows.map(({ payload, file, ...image }) => ({ name: payload, payload, image: { url: `asset:images/${file}`, sha256: image.sha256, sizeBytes: image.sizeBytes, compression: image.compression, unpackedBytes: image.unpackedBytes, contentDigest: image.contentDigest }, rootDisk: { bus: 'virtio' }, retireWipes: true, ...options.classes?.[payload] }));
  writeFileSync(at('classes.yaml'), stringify({ classes }));
  const limit = (limits: WorldLimits): void => writeFileSync(at('limits.json'), JSON.stringify({ ...LIMITS, ...options.limits, ...limits }));
  limit({});

  const { name: namespace, temporal } = await test.namespace();
  const netboxToken = `nbt_test00000001.${randomBytes(20).toString('hex')}`;
  const netbox = await startNetboxStandIn({ token: netboxToken, log: silentLogger(), ...(options.netboxFields && { fields: options.netboxFields }) });
  const [TFTP, BOOT_HTTP, SYSLOG, AGENT_HTTP, METADATA, OPERATOR] = (await reservePorts(6)) as [number, number, number, number, number, number];
  const ports = { TFTP, BOOT_HTTP, SYSLOG, AGENT_HTTP, METADATA, OPERATOR };
  const base: Record<string, string> = {
    ...Object.fromEntries(Object.entries(ports).map(([key, port]) => [`METALFLOW_${key}_PORT`, String(port)])),
    METALFLOW_DATA_DIR: dir, METALFLOW_SITE: 'lab', METALFLOW_SIMULATION: 'true', METALFLOW_LOG_LEVEL: 'debug', METALFLOW_LIMITS_FILE: at('limits.json'), METALFLOW_RECONCILE_SECONDS: '2', METALFLOW_POWER_WATCH_SECONDS: '0',
    METALFLOW_NETBOX_URL: netbox.url, METALFLOW_NETBOX_TOKEN: netboxToken, METALFLOW_NETBOX_WEBHOOK_SECRET: secret,
    TEMPORAL_ADDRESS: test.server.address, TEMPORAL_NAMESPACE: namespace, ...options.env,
  };
  const machines: SimulatedMachine[] = [];
  const databases: Db[] = [];
  const houses: Promise<HouseProcess>[] = [];
  let nodeCount = 0;

  const world: World = {
    dir, netbox, temporal, namespace, token, secrets: { bmcPassword: AMT.password, netboxToken, webhookSecret: secret, operatorToken: token }, env: base, house: null as unknown as HouseProcess,
    limit,
    async start(env = {}) {
      const starting = startHouseProcess({ ...base, ...env }, at('house.log'));
      houses.push(starting);
      world.house = await starting;
      netbox.webhook = { url: `${world.house.addresses.operator}/webhooks/netbox`, secret };
      return world.house;
    },
    async addNode({ payload = 'talos', name, status = 'planned', customFields = {}, diskBytes = 32 * 1024 * 1024, secondDisk = false } = {}) {
      const index = ++nodeCount;
      const id = { name: name ?? `node-${index}`, mac: `02:00:00:00:01:${index.toString(16).padStart(2, '0')}`, systemUuid: `4c4c4544-0001-4000-8000-${String(index).padStart(12, '0')}`, serial: `DISK-${index}` };
      const disk = (name: string, serial: string) => ({ name, serial, model: 'SIMULATED', sizeBytes: diskBytes, bus: 'virtio' });
      const address = `127.0.1.${index}`;
      const machine = await startSimulatedMachine({
        dir: at('nodes', id.name), systemUuid: id.systemUuid, mac: id.mac, disks: [disk('vda', id.serial), ...(secondDisk ? [disk('vdb', `${id.serial}-B`)] : [])],
        tftp: { host: '127.0.0.1', port: ports.TFTP }, bootUrl: `http://127.0.0.1:${ports.BOOT_HTTP}`, amt: { ...AMT, port: await reservePort() }, lldpFrame: null, syslog: { port: ports.SYSLOG, from: address }, attestEveryMs: 500, log: silentLogger(),
      });
      machines.push(machine);
      const deviceId = netbox.addDevice({
        name: id.name, status, site: 'lab', oobIp: '127.0.0.1/8', bmcPort: machine.amt.port,
        customFields: { bmc_type: 'amt', node_class: payload, system_uuid: id.systemUuid, wipe_disks: [id.serial, ...(secondDisk ? [`${id.serial}-B`] : [])], ...customFields },
        interfaces: [{ name: 'eth0', mac: id.mac, addresses: [`${address}/8`] }],
      });
      return { ...id, deviceId, machine };
    },
    ask: (node, request) => netbox.patchDevice(node.deviceId, { custom_fields: { desired_action: request } }),
    async api(method, path, body) {
      const response = await fetch(`${world.house.addresses.operator}${path}`, { method, headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) }, ...(body !== undefined && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(20_000) });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
    async node(node) {
      const { status, body } = await world.api('GET', `/api/v1/nodes/${node.deviceId}`);
      if (status !== 200) throw new Error(`node ${node.name}: ${status} ${JSON.stringify(body)}`);
      return body['node'] as NodeRow;
    },
    async run(node, run) {
      const { status, body } = await world.api('GET', `/api/v1/runs/${node.deviceId}/${run}`);
      if (status !== 200) throw new Error(`run ${run}: ${status} ${JSON.stringify(body)}`);
      return body['run'] as RunRow;
    },
    lifecycleView: (node) => temporal.client.workflow.getHandle(lifecycleId(node.deviceId)).query<LifecycleView>(STATE_QUERY),
    runView: (node, run) => temporal.client.workflow.getHandle(runWorkflowId(node.deviceId, run)).query<RunView>(STATE_QUERY),
    until: (what, look, seconds = PATIENCE_SECONDS) => until(what, look, seconds).catch((error: Error) => {
      throw new Error(`${error.message}\n${world.houseLog().slice(-3000)}`);
    }),
    async untilState(node, state, seconds) {
      let last: NodeRow | null = null;
      const seen = await world.until(`${node.name} ${state}`, async () => {
        last = await world.node(node);
        return last.state === state && (state === 'held' || last.openRun === null || ['provisioning', 'wiping', 'retiring'].includes(state)) ? last : null;
      }, seconds).catch((error: Error) => {
        throw new Error(`${error.message}\nnode: ${JSON.stringify(last)}`);
      });
      await world.until(`NetBox to be told that ${node.name} is ${state}`, () => isPublished(node.deviceId, STATES[state].netboxStatus));
      return seen;
    },
    async db() {
      const db = await openDatabase(`sqlite:${at('metalflow.db')}`);
      databases.push(db);
      return db;
    },
    houseLog: () => readFileSync(at('house.log'), 'utf8'),
    async close() {
      // Also one that a test began to start and did not wait for.
      for (const starting of houses) await starting.then((house) => house.kill(), () => undefined);
      for (const db of databases) await db.destroy();
      for (const machine of machines) await machine.close();
      await netbox.close();
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return world;

  /** A status is written to NetBox after the store, and noted in the store when that is done. A node that no run ever touched is not written. */
  async function isPublished(deviceId: string, status: string | null): Promise<boolean> {
    if (status === null) return true;
    const db = await openDatabase(`sqlite:${at('metalflow.db')}`);
    try {
      const { netbox_status: told } = await db.selectFrom('device').select('netbox_status').where('device_id', '=', deviceId).executeTakeFirstOrThrow();
      return told === status || !(await db.selectFrom('run').select('number').where('device_id', '=', deviceId).executeTakeFirst());
    } finally {
      await db.destroy();
    }
  }
}
