/**
 * The workflows alone: the bundle of dist/ in a time-skipping server, with activities that do what a test's script says. Time is
 * skipped while somebody awaits a result, or a hold (`skipUntilHeld`), and stands still otherwise and while any activity runs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { Client, WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import type { CentralActivities, SiteActivities } from '../../src/activities/index.js';
import { ERRORS, failure, type ErrorCode, type ErrorDetails } from '../../src/domain/errors.js';
import { DEFAULT_LIMITS } from '../../src/domain/limits.js';
import type { RunKind } from '../../src/domain/runs.js';
import { lifecycleId, runWorkflowId, SEARCH_ATTRIBUTES, SIGNALS, siteQueue, STATE_QUERY, TAKING_UP, WORKFLOW_QUEUE, WORKFLOWS, type LifecycleCarried, type LifecycleView, type OperatorVerb, type RunInput, type RunOutcome, type RunView, type VerbInput, type WatchedEnd } from '../../src/contracts/messages.js';
import type { RunPlan } from '../../src/contracts/plan.js';
import type { DeviceRecord } from '../../src/contracts/store.js';
import { PATIENT } from './patient-worker.js';
import { until } from './until.js';

type Activities = CentralActivities & SiteActivities;
export type ActivityName = keyof Activities;
type Input<N extends ActivityName> = Parameters<Activities[N]>[0];
type Answer<N extends ActivityName> = Awaited<ReturnType<Activities[N]>>;
/** What an activity does in this test; `usual` is what it does by default. */
export type Acts = { [N in ActivityName]?: (input: Input<N>, usual: () => Promise<Answer<N>>) => Promise<Answer<N>> | Answer<N> };

const SITE = 'lab';
const DISK = { serial: 'DISK-1' };
export const ACTIONS = [
  { title: 'wipe', action: { name: 'wipe-disk', disk: DISK }, destructive: true, timeoutSeconds: 60 },
  { title: 'image', action: { name: 'write-image', disk: DISK, url: 'http://127.0.0.1/image', sha256: 'a'.repeat(64), sizeBytes: 1, compression: 'none', unpackedBytes: 1 }, destructive: true, timeoutSeconds: 60 },
  { title: 'reboot', action: { name: 'reboot' }, destructive: false, timeoutSeconds: 60 },
] as const;

const planOf = (deviceId: string, run: number, kind: RunKind): RunPlan => ({
  deviceId, nodeName: `node-${deviceId}`, run, kind, site: SITE, systemUuid: '4c4c4544-0001-4000-8000-000000000001', bmc: { type: 'amt', host: '127.0.0.1', port: 16992 }, wipes: false, netboots: kind !== 'retire',
  nodeClass: 'talos', payload: 'talos', template: 'talos', image: { source: 'asset:image', url: 'http://127.0.0.1/image', sha256: 'a'.repeat(64), sizeBytes: 1, compression: 'none', unpackedBytes: 1 },
  diskRule: {}, rootDisk: null, wipeDisks: ['DISK-1'], actions: [], seed: null, allowUnproven: true, confirmBy: kind === 'retire' ? 'power-off' : kind === 'wipe' ? 'none' : 'seed-fetched',
}) as RunPlan;

/** An activity that has no end of its own, and hears of a cancellation at once. */
export async function endless(): Promise<never> {
  for (;;) {
    Context.current().heartbeat();
    await Context.current().sleep(50);
  }
}

/** What an activity throws when it cannot do what its name says. @param given up: as after the last of its tries */
export const fails = (code: ErrorCode, details?: ErrorDetails, givenUp = false): ApplicationFailure => ApplicationFailure.create({ type: code, message: code, nonRetryable: givenUp || !ERRORS[code].retryable, details: [failure(code, details)] });
export const crashes = (message: string): ApplicationFailure => ApplicationFailure.create({ type: 'TypeError', message, nonRetryable: true });

/** One node of a test: what its activities do, and what they were asked. */
export class Bench {
  readonly calls: { readonly name: ActivityName; readonly input: Record<string, unknown> }[] = [];
  acts: Acts = {};
  /** As the store has it. */
  record: DeviceRecord;
  asks: RunKind | null = null;
  boots = 0;
  nextRun = 1;
  constructor(readonly deviceId: string, readonly workflows: WorkflowBench) {
    this.record = { deviceId, name: `node-${deviceId}`, site: SITE, nodeClass: 'talos', state: 'active', stateSince: new Date(0).toISOString(), previousState: null, hold: null, adopted: false, netboxStatus: null, nextRequest: null, openRun: null, lastRun: null, approvedUuid: null, power: 'on' };
  }

  called(name: ActivityName): Record<string, unknown>[] {
    return this.calls.filter((call) => call.name === name).map(({ input }) => input);
  }
  signal(workflowId: string, name: keyof typeof SIGNALS, payload: unknown): Promise<void> {
    return this.workflows.client.workflow.getHandle(workflowId).signal(SIGNALS[name].name, payload);
  }
}

const runIdNow = (): string => Context.current().info.workflowExecution!.runId;

/** A node that does what it should. */
const USUAL: { [N in ActivityName]: (bench: Bench, input: Input<N>) => Promise<Answer<N>> | Answer<N> } = {
  enterPhase: () => ({ fence: runIdNow(), takenOver: false }),
  noteHold: () => undefined,
  alertHold: () => undefined,
  noteVerb: () => undefined,
  approveMachine: () => undefined,
  planRun: ({ deviceId }, { run, kind }) => ({ kind: 'planned', plan: planOf(deviceId, run, kind) }),
  renewPin: () => ({ kind: 'as-before' }),
  checkMachine: () => ({ kind: 'same', uuid: null }),
  noteBmc: () => ({ product: 'Intel(r) AMT', version: '16.1.25' }),
  checkImage: () => ({ kind: 'good', bytes: 1 }),
  takeRequest: (bench) => {
    bench.asks = null;
    return { kind: 'taken' };
  },
  changePower: (_bench, { command }) => ({ kind: 'reached', power: command, commanded: true }),
  waitForPower: (_bench, { wanted }) => wanted,
  confirmOff: () => ({ kind: 'off-twice' }),
  watchPower: () => ({ observed: 0, unknown: 0, busy: 0, drifted: 0 }),
  bootOnceFromNetwork: () => ({ kind: 'armed' }),
  openBootAttempt: async (bench, { deviceId, run }) => {
    const bootAttempt = `attempt-${++bench.boots}`;
    await bench.signal(runWorkflowId(deviceId, run), 'bootSeen', { bootAttempt });
    await bench.signal(runWorkflowId(deviceId, run), 'attested', { bootAttempt, attestationId: 'a-1', accepted: true, reason: null });
    return { bootAttempt, number: bench.boots };
  },
  adoptIntakeAttempt: async (bench, { deviceId, run }) => USUAL.openBootAttempt(bench, { deviceId, run }),
  leasePermission: () => undefined,
  // The real one lives until it is cancelled; here it would keep time from being skipped.
  keepPermission: () => undefined,
  withdrawPermission: () => undefined,
  confirmBootSeen: () => true,
  acceptAttestation: () => ({ kind: 'accepted', proof: 'unproven', disk: 'DISK-1', actions: ACTIONS }),
  postOrder: async (bench, { deviceId, run, action }) => {
    if (action.action.name === 'reboot') await bench.signal(runWorkflowId(deviceId, run), 'systemSeen', { run, how: 'seed-fetched' });
    return { orderId: `${action.title}-${bench.called('postOrder').filter((other) => (other['action'] as { title: string }).title === action.title).length}`, grant: 1 };
  },
  awaitOrder: () => ({ kind: 'reported', report: { result: 'succeeded', message: '' } }),
  orderResult: () => null,
  resolveOrderAsDone: () => undefined,
  cancelOrders: () => undefined,
  finishRun: (bench, { outcome }) => closed(bench, outcome),
  closeRun: (bench, { outcome }) => closed(bench, outcome),

  recallDevice: ({ record }) => ({ record, distrust: null }),
  keepState: (bench, { state, previousState, hold, nextRequest }) => void (bench.record = { ...bench.record, state, previousState, hold, nextRequest }),
  adoptDevice: ({ record }) => record,
  letNetboxStand: ({ record }) => record,
  reconcile: () => ({ signalled: 0, restarted: 0 }),
  lookAtDevice: ({ record, asks }) => ({ kind: 'found', device: { name: record.name, site: SITE, nodeClass: 'talos', status: record.netboxStatus ?? 'active', desiredAction: asks, unknownAction: null }, record, distrust: null }),
  writeStatus: (bench, { status, ended }) => {
    if (ended?.kind === bench.asks) bench.asks = null;
    if (status) bench.record = { ...bench.record, netboxStatus: status };
    return { kind: 'written' };
  },
  writeJournal: () => undefined,
  tellRefusal: () => undefined,
  openRun: (bench, { deviceId, kind, asked, intake }) => {
    const isNew = bench.record.openRun === null;
    const run = bench.record.openRun?.run ?? bench.nextRun++;
    bench.record = { ...bench.record, openRun: { run, kind, workflowId: runWorkflowId(deviceId, run) } };
    return { isNew, workflowId: runWorkflowId(deviceId, run), input: runInput(deviceId, run, kind, asked, intake) };
  },
  watchRun: async (bench, { workflowId }): Promise<WatchedEnd> => {
    const handle = bench.workflows.client.workflow.getHandle(workflowId);
    try {
      await handle.describe();
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { kind: 'never-started' };
      throw error;
    }
    return { kind: 'ended', outcome: (await handle.result()) as RunOutcome };
  },
};

function closed(bench: Bench, outcome: RunOutcome): RunOutcome {
  const { openRun, lastRun } = bench.record;
  if (!openRun) return lastRun?.outcome ?? outcome;
  bench.record = { ...bench.record, openRun: null, lastRun: { run: openRun.run, kind: openRun.kind, outcome, at: new Date(0).toISOString() } };
  return outcome;
}

const runInput = (deviceId: string, run: number, kind: RunKind, asked: RunInput['asked'] = { how: 'netbox' }, intake: RunInput['intake'] = null): RunInput => ({ deviceId, nodeName: `node-${deviceId}`, site: SITE, run, kind, limits: DEFAULT_LIMITS, asked, intake });

export interface WorkflowBench {
  readonly env: TestWorkflowEnvironment;
  /** Skips no time. */
  readonly client: Client;
  node(acts?: Acts): Bench;
  startRun(bench: Bench, kind?: RunKind, intake?: RunInput['intake']): Promise<WorkflowHandle>;
  /** @param carried as of a history before this one */
  startLifecycle(bench: Bench, carried?: LifecycleCarried): Promise<WorkflowHandle>;
  /** Skips time until the run is held; it stands still from that moment on. */
  skipUntilHeld(node: Bench, handle: WorkflowHandle, code: ErrorCode): Promise<void>;
  /** Skips time until `look` sees something; whatever waits for years passes them meanwhile. */
  skipUntil<T>(what: string, look: () => Promise<T | null | undefined | false>): Promise<T>;
  /** Awaits the end of a workflow, skipping time. */
  endOf(handle: WorkflowHandle): Promise<RunOutcome>;
  say(handle: WorkflowHandle, verb: OperatorVerb, input?: Partial<VerbInput>): Promise<string>;
  close(): Promise<void>;
}

/** The test server sometimes never answers a query that meets a continue-as-new; it is asked again instead of waited for. */
const ask = <View>(handle: WorkflowHandle): Promise<View> => until(`${handle.workflowId} to show itself`, () => handle.client.withDeadline(Date.now() + 5000, () => handle.query<View>(STATE_QUERY)));
export const runView = (handle: WorkflowHandle): Promise<RunView> => ask(handle);
export const lifecycleView = (handle: WorkflowHandle): Promise<LifecycleView> => ask(handle);

/** What its page in Temporal's UI says, also of one that has ended. */
export const pageOf = async (handle: WorkflowHandle): Promise<string> =>
  until(`the page of ${handle.workflowId}`, async () => (await handle.client.withDeadline(Date.now() + 5000, () => handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata'))).currentDetails);

export const untilHeld = (handle: WorkflowHandle, code: ErrorCode): Promise<RunView['hold']> => until(`held for ${code}`, async () => {
  const { hold, ...view } = await runView(handle);
  if (hold && hold.code !== code) throw new Error(`held for ${hold.code}: ${hold.message}`);
  if (!hold) throw new Error(JSON.stringify(view));
  return hold;
});

const TEST_SERVER = join(process.cwd(), '.tools', 'temporal-venv', 'bin', 'temporal-test-server');

export async function openWorkflowBench(): Promise<WorkflowBench> {
  // The SDK draws a free port and gives the server five seconds; a laden machine may need another try.
  const env = await until('the test server', () => TestWorkflowEnvironment.createTimeSkipping({ server: { executable: { type: 'existing-path', path: TEST_SERVER } } }), 200);
  const KEYWORD = 2;
  await env.connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes: Object.fromEntries(Object.values(SEARCH_ATTRIBUTES).map((name) => [name, KEYWORD])) });
  const benches = new Map<string, Bench>();
  const act = (name: ActivityName) => async (input: never): Promise<unknown> => {
    const deviceId = Context.current().info.workflowExecution!.workflowId.split('/')[1]!;
    const bench = benches.get(deviceId)!;
    bench.calls.push({ name, input });
    const usual = async (): Promise<never> => USUAL[name](bench, input) as never;
    const scripted = bench.acts[name] as ((input: never, usual: () => Promise<never>) => unknown) | undefined;
    return scripted ? scripted(input, usual) : usual();
  };
  const activities = Object.fromEntries((Object.keys(USUAL) as ActivityName[]).map((name) => [name, act(name)]));
  const common = { ...PATIENT, connection: env.nativeConnection, activities, maxHeartbeatThrottleInterval: '50ms', defaultHeartbeatThrottleInterval: '50ms' } as const;
  const workers = [
    await Worker.create({ ...common, taskQueue: WORKFLOW_QUEUE, workflowBundle: { code: readFileSync(join(process.cwd(), 'dist', 'workflow-bundle.js'), 'utf8') } }),
    await Worker.create({ ...common, taskQueue: siteQueue(SITE) }),
  ];
  const running = Promise.all(workers.map((worker) => worker.run()));
  const client = new Client({ connection: env.connection });
  const { testService: clock } = env.connection as unknown as { testService: { lockTimeSkipping(request: object): Promise<unknown>; unlockTimeSkipping(request: object): Promise<unknown> } };
  let count = 0;
  const bench: WorkflowBench = {
    env, client,
    node(acts = {}) {
      const node = new Bench(String(++count), bench);
      node.acts = acts;
      benches.set(node.deviceId, node);
      return node;
    },
    startRun: ({ deviceId }, kind = 'provision', intake = null) => client.workflow.start(WORKFLOWS.run, { workflowId: runWorkflowId(deviceId, 1), taskQueue: WORKFLOW_QUEUE, args: [runInput(deviceId, 1, kind, { how: 'netbox' }, intake)] }),
    async startLifecycle({ deviceId }, carried) {
      await client.workflow.start(WORKFLOWS.lifecycle, { workflowId: lifecycleId(deviceId), taskQueue: WORKFLOW_QUEUE, args: [{ deviceId, ...(carried && { carried }) }] });
      // By its id alone: it goes on under other run ids.
      return client.workflow.getHandle(lifecycleId(deviceId));
    },
    endOf: (handle) => env.client.workflow.getHandle(handle.workflowId).result() as Promise<RunOutcome>,
    async skipUntilHeld(node, handle, code) {
      let isLocked = false;
      const stop = async (): Promise<void> => {
        if (isLocked) return;
        isLocked = true;
        await clock.lockTimeSkipping({});
      };
      // In the hold's own first step: a moment later its year would have passed.
      node.acts = { ...node.acts, noteHold: stop };
      await clock.unlockTimeSkipping({});
      await untilHeld(handle, code).finally(stop);
    },
    async skipUntil(what, look) {
      await clock.unlockTimeSkipping({});
      return until(what, look).finally(() => clock.lockTimeSkipping({}));
    },
    async say(handle, verb, input = {}) {
      // As the operator plane does: said again while the node is taken up.
      return until(`${verb} to be judged`, async () => {
        const { runId } = await handle.describe();
        try {
          return (await handle.executeUpdate<{ text: string }, [VerbInput]>(verb, { args: [{ by: 'tester', runId, ...input }] })).text;
        } catch (error) {
          const why = ((error as Error).cause as Error | undefined)?.message ?? (error as Error).message;
          return !why.includes(TAKING_UP) && `refused: ${why}`;
        }
      });
    },
    async close() {
      for (const worker of workers) worker.shutdown();
      await running;
      await env.teardown();
    },
  };
  return bench;
}
