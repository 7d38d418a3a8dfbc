/**
 * Every recorded history goes through today's workflow code as it went then. A failure here means that runs which are open while
 * metalflow is upgraded would stop: guard the change with `patched`, or, before a release, record anew (scripts/record-histories.mjs).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { DefaultLogger, Runtime, Worker, type ReplayResult } from '@temporalio/worker';
import { PATIENT } from '../support/patient-worker.js';
import { historyOf } from './history-json.js';

const FOLDER = join(process.cwd(), 'test', 'fixtures', 'histories');
const BUNDLE = join(process.cwd(), 'dist', 'workflow-bundle.js');

interface Recorded {
  readonly workflowId: string;
  readonly events: { activityTaskScheduledEventAttributes?: { activityType: { name: string } } }[];
}

const text = (file: string): string => (file.endsWith('.gz') ? gunzipSync(readFileSync(join(FOLDER, file))).toString() : readFileSync(join(FOLDER, file), 'utf8'));
const recorded = new Map(readdirSync(FOLDER).map((file) => [file.replace(/\.json(\.gz)?$/, ''), JSON.parse(text(file)) as Recorded]));

/** One worker replays them all. @returns what became of each, by name */
async function replay(histories: ReadonlyMap<string, Recorded>): Promise<Map<string, ReplayResult>> {
  const named = [...histories].map(([name, { workflowId, events }]) => ({ workflowId: `${name} as ${workflowId}`, history: historyOf(events) }));
  const results = new Map<string, ReplayResult>();
  for await (const result of Worker.runReplayHistories({ ...PATIENT, workflowBundle: { codePath: BUNDLE } }, named)) results.set(result.workflowId.split(' as ')[0]!, result);
  return results;
}

let results: Map<string, ReplayResult>;
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
  results = await replay(recorded);
});

test('every kind of run and every turn of a lifecycle is recorded', () => {
  expect([...recorded.keys()].sort()).toEqual([
    'installation', 'lifecycle-active', 'lifecycle-continued', 'lifecycle-nothing-to-do', 'lifecycle-until-continued', 'lifecycle-whole-life', 'provision-cancelled', 'provision-cloud-init', 'provision-ended-by-a-reset', 'provision-failed',
    'provision-held-and-resumed', 'provision-intake', 'provision-reset', 'provision-talos', 'reconcile', 'reprovision', 'retire', 'retire-with-wipe', 'wipe',
  ]);
});

test.each([...recorded.keys()])("today's code goes the recorded way of %s", (name) => {
  expect(results.get(name)).toEqual(expect.objectContaining({ error: undefined }));
});

test('a history that was tampered with is not what the code would have done', async () => {
  const tampered = structuredClone(recorded.get('provision-talos')!);
  const step = tampered.events.find((event) => event.activityTaskScheduledEventAttributes?.activityType.name === 'changePower');
  step!.activityTaskScheduledEventAttributes!.activityType.name = 'bootOnceFromNetwork';
  const result = (await replay(new Map([['tampered', tampered]]))).get('tampered');
  expect(result?.error?.name).toBe('DeterminismViolationError');
});
