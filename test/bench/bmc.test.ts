/**
 * A room full of AMTs that are all to boot from the network at once, through the activities of a run and the SQLite store; and one
 * boot order of ours beside those of two Python clients. The AMTs are another process: `metalflow simulate amt`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPowerActivities, type PowerChangeResult } from '../../src/activities/power.js';
import { createBmcFactory } from '../../src/bmc/factory.js';
import type { Device } from '../../src/contracts/device.js';
import { ERRORS, isMetalflowError } from '../../src/domain/errors.js';
import { createStore, openDatabase, type Store } from '../../src/store/index.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { runActivity } from '../support/activity-env.js';
import { installPythonClients, runPythonClient } from '../support/amt-clients.js';
import { startSimulateAmt, type SimulateAmtProcess, type SimulatedEndpoint } from '../support/simulate-amt.js';
import { deviceOf } from '../support/store-bench.js';
import { percentile, printFigures, summary } from './print.js';

const BMCS = Number(process.env['BENCH_BMCS'] ?? 500);
/** The three take turns, so that a neighbour's load meets them all; the first order of a turn warms up and is not counted. */
const TURNS = 4;
const ORDERS = 6;
const CREDENTIALS = { username: 'admin', password: 'P@ssw0rd1' };
const LIMITS = { limitSeconds: 240, settlingSeconds: 180, pollSeconds: 1 };

let folder: string;
let store: Store;
let simulator: SimulateAmtProcess;
let idle: { openFiles: number; kib: number };
beforeAll(async () => {
  await installPythonClients();
  simulator = await startSimulateAmt('--count', String(BMCS), '--power', 'off-soft');
  idle = { openFiles: openFilesOf(simulator.pid), kib: memoryOf(simulator.pid, 'VmRSS') };
  folder = mkdtempSync(join(tmpdir(), 'metalflow-bench-'));
  store = createStore({ db: await openDatabase(`sqlite:${join(folder, 'store.db')}`), temporal: { look: async () => ({ kind: 'absent' }) } });
  await store.installation.begin('bench');
  await store.installation.confirm();
}, 240_000);
afterAll(async () => {
  await simulator?.stop();
  await store?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
}, 60_000);

const openFilesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
const memoryOf = (pid: number, what: 'VmRSS' | 'VmHWM'): number => Number(new RegExp(`${what}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
const mib = (kib: number): string => `${(kib / 1024).toFixed(0)} MiB`;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** The activities as the worker has them; one run of one node behind an endpoint. */
function activities() {
  return createPowerActivities({ bmc: createBmcFactory({ secrets: { readJson: async () => CREDENTIALS }, log: silentLogger() }), stores: store, lockSeconds: 60 });
}

interface Node {
  readonly ref: { readonly deviceId: string; readonly run: number };
  readonly bmc: Device['bmc'] & { readonly type: 'amt' };
  readonly caller: { readonly workflowId: string; readonly temporalRunId: string };
}

async function declare({ endpoint, port, machineUuid }: SimulatedEndpoint, first: number): Promise<Node> {
  const deviceId = String(first + endpoint);
  const bmc = { type: 'amt' as const, host: '127.0.0.1', port };
  const mac = `02:00:00:00:${(endpoint >> 8).toString(16).padStart(2, '0')}:${(endpoint & 255).toString(16).padStart(2, '0')}`;
  await store.devices.register(deviceOf({ id: deviceId, name: `node-${deviceId}`, systemUuid: machineUuid, bmc, macs: [mac], addresses: [] }), { state: 'planned', adopted: false });
  const { run, workflowId } = await store.runs.open(deviceId, 'provision', { asked: { how: 'netbox' }, intake: null });
  return { ref: { deviceId, run }, bmc, caller: { workflowId, temporalRunId: `temporal-${deviceId}` } };
}

/** What a run does between a machine that is off and one that is on from the network. Tries the arming again as Temporal would. */
async function bootFromNetwork({ ref, bmc, caller }: Node, power: ReturnType<typeof activities>): Promise<{ result: PowerChangeResult; again: number }> {
  let again = 0;
  for (;;) {
    try {
      const armed = await runActivity(caller, power.bootOnceFromNetwork, { ...ref, bmc, limitSeconds: LIMITS.limitSeconds });
      if (armed.kind === 'refused') throw new Error(armed.failure.message);
      break;
    } catch (error) {
      if (!isMetalflowError(error) || ERRORS[error.code].retryable === false || again === 20) throw error;
      again += 1;
    }
  }
  const result = await runActivity(caller, power.changePower, { ...ref, bmc, command: 'on', intent: `${ref.deviceId}/on`, ...LIMITS });
  return { result, again };
}

interface Counted {
  readonly endpoints: readonly { readonly power: string; readonly counts: { readonly maxInFlight: number; readonly requests: number; readonly powerCommands: Record<string, number> } }[];
}
const counted = async (): Promise<Counted> => (await (await fetch(`${simulator.control}api/endpoints`)).json()) as Counted;

test(`${BMCS} BMCs are asked at once to boot their machines from the network, and no BMC has two requests at a time`, async () => {
  const nodes: Node[] = [];
  for (const endpoint of simulator.endpoints) nodes.push(await declare(endpoint, 1));
  const power = activities();
  const before = { openFiles: openFilesOf(process.pid), kib: memoryOf(process.pid, 'VmRSS') };
  const peak = { openFiles: 0, kib: 0, theirs: 0 };
  const look = (): void => {
    peak.openFiles = Math.max(peak.openFiles, openFilesOf(process.pid));
    peak.kib = Math.max(peak.kib, memoryOf(process.pid, 'VmRSS'));
    peak.theirs = Math.max(peak.theirs, openFilesOf(simulator.pid));
  };
  const sampling = setInterval(look, 100);
  const began = performance.now();
  const each: number[] = [];
  const done = await Promise.all(nodes.map(async (node) => {
    const answer = await bootFromNetwork(node, power);
    each.push(performance.now() - began);
    return answer;
  })).finally(() => clearInterval(sampling));
  const { endpoints } = await counted();

  expect(done.map(({ result }) => result.kind)).toEqual(nodes.map(() => 'reached'));
  expect(endpoints.map((endpoint) => endpoint.counts.maxInFlight)).toEqual(nodes.map(() => 1));
  expect(endpoints.map((endpoint) => [endpoint.power, endpoint.counts.powerCommands])).toEqual(nodes.map(() => ['on', { 2: 1 }]));
  printFigures(`${BMCS} BMCs asked at once to boot from the network (driver, activities and SQLite store here; AMTs in a process of their own)`, {
    'until half, 95 of 100, all were armed, on, and seen on': `${seconds(percentile(each, 0.5))}, ${seconds(percentile(each, 0.95))}, ${seconds(Math.max(...each))}`,
    'requests at a BMC, of all; the most at once at any': `${endpoints.reduce((sum, { counts }) => sum + counts.requests, 0)}; ${Math.max(...endpoints.map(({ counts }) => counts.maxInFlight))}`,
    'armings that had to be tried again': String(done.reduce((sum, { again }) => sum + again, 0)),
    'memory here before, at the peak': `${mib(before.kib)}, ${mib(peak.kib)}`,
    'open files here before, at the peak': `${before.openFiles}, ${peak.openFiles}`,
    'memory of the simulator idle, at its peak': `${mib(idle.kib)}, ${mib(memoryOf(simulator.pid, 'VmHWM'))}`,
    'open files of the simulator idle, at the peak': `${idle.openFiles}, ${peak.theirs}`,
  });
}, 600_000);

test('one boot order, beside the shorter ones of two Python clients', async () => {
  const [endpoint] = simulator.endpoints as [SimulatedEndpoint];
  const offUrl = `${simulator.control}api/endpoints/0/power`;
  const switchOff = async (): Promise<void> => void (await (await fetch(offUrl, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"power":"off-soft"}' })).text());
  const factory = createBmcFactory({ secrets: { readJson: async () => CREDENTIALS }, log: silentLogger() });
  const address = { type: 'amt' as const, host: '127.0.0.1', port: endpoint.port };
  const python = async (client: string): Promise<number[]> => {
    const { exit, out } = await runPythonClient('boot_bench.py', [client, '--port', String(endpoint.port), '--password', CREDENTIALS.password, '--off-url', offUrl, '--rounds', String(ORDERS)], 60_000);
    if (exit !== 0) throw new Error(out);
    return (JSON.parse(out) as number[]).slice(1);
  };
  const took: Record<'driver' | 'sdague' | 'powerctl', number[]> = { driver: [], sdague: [], powerctl: [] };
  async function ours(): Promise<number[]> {
    const times: number[] = [];
    for (let order = 0; order < ORDERS; order += 1) {
      await switchOff();
      const began = performance.now();
      const bmc = await factory.open(address);
      expect([await bmc.bootOnceFromNetwork(), await bmc.powerOn()]).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
      await bmc.close();
      times.push(performance.now() - began);
    }
    return times.slice(1);
  }
  for (let turn = 0; turn < TURNS; turn += 1) {
    took.driver.push(...(await ours()));
    took.sdague.push(...(await python('sdague')));
    took.powerctl.push(...(await python('powerctl')));
  }
  const median = (of: keyof typeof took): number => percentile(took[of], 0.5);
  printFigures('one whole boot order at an idle AMT', {
    'ours: read, clear, put, role, source, on (6 requests)': summary(took.driver),
    'PyPI amt: source, role, on (3 requests)': `${summary(took.sdague)}; ours / theirs ${(median('driver') / median('sdague')).toFixed(2)}`,
    'PyPI powerctl: on (1 request)': `${summary(took.powerctl)}; ours / theirs ${(median('driver') / median('powerctl')).toFixed(2)}`,
  });
  expect(Object.values(took).map((times) => times.length)).toEqual([20, 20, 20]);
}, 300_000);
