/** What a sequential activity costs, with the server settings of `up` and of the compose file beside the server's own defaults. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, NativeConnection, Worker } from '@temporalio/worker';
import { DYNAMIC_CONFIG, findTemporalCli } from '../../src/main/temporal-server.js';
import { reservePort } from '../support/ports.js';
import { until } from '../support/until.js';
import { printFigures, summary } from './print.js';

const ACTIVITIES = 40;
const ROUNDS = 5;
const QUEUE = 'bench';

/** Milliseconds an activity, a round each. */
async function measure(settings: Readonly<Record<string, string>>, dbFile: string | null, code: string): Promise<number[]> {
  const port = await reservePort();
  const args = ['server', 'start-dev', '--headless', '--port', String(port), '--http-port', String(await reservePort()), '--metrics-port', String(await reservePort()), '--log-level', 'error', ...(dbFile ? ['--db-filename', dbFile] : []), ...Object.entries(settings).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`])];
  const server = spawn(findTemporalCli(process.env['METALFLOW_TEMPORAL_CLI'] ?? null, process.env['PATH'] ?? '')!, args, { stdio: 'ignore' });
  const gone = new Promise((resolve) => server.once('exit', resolve));
  try {
    const address = `127.0.0.1:${port}`;
    const connection = await connected(address);
    const native = await NativeConnection.connect({ address });
    const worker = await Worker.create({ connection: native, taskQueue: QUEUE, workflowBundle: { code }, activities: { nothing: async () => undefined } });
    const client = new Client({ connection });
    const samples = await worker.runUntil(async () => {
      await client.workflow.execute('oneAfterAnother', { taskQueue: QUEUE, workflowId: 'warm', args: [5] });
      const taken: number[] = [];
      for (let round = 0; round < ROUNDS; round++) taken.push((await client.workflow.execute<(count: number) => Promise<number>>('oneAfterAnother', { taskQueue: QUEUE, workflowId: `round-${round}`, args: [ACTIVITIES] })) / ACTIVITIES);
      return taken;
    });
    await native.close();
    await connection.close();
    return samples;
  } finally {
    server.kill('SIGTERM');
    await gone;
  }
}

function connected(address: string): Promise<Connection> {
  return until('the server knows its namespace', async () => {
    const connection = await Connection.connect({ address, connectTimeout: '1s' });
    await connection.workflowService.describeNamespace({ namespace: 'default' });
    return connection;
  });
}

test('a sequential activity, tuned beside default', async () => {
  const { code } = await bundleWorkflowCode({ workflowsPath: join(process.cwd(), 'test', 'bench', 'activity-workflows.ts') });
  const tuned = await measure(DYNAMIC_CONFIG, null, code);
  const plain = await measure({}, null, code);
  const mean = (samples: readonly number[]): number => samples.reduce((sum, one) => sum + one, 0) / samples.length;
  printFigures(`sequential activity, dev server in memory, ${ACTIVITIES} activities a round`, {
    'with our server settings': summary(tuned),
    "with the server's defaults": summary(plain),
    'ratio of the means': (mean(tuned) / mean(plain)).toFixed(2),
  });
  expect([tuned.length, plain.length]).toEqual([ROUNDS, ROUNDS]);
}, 120_000);
