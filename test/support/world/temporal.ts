/** One Temporal dev server a test file, in memory; each test gets a namespace of its own. It outlives the house, as a real one does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectTemporal, type TemporalClient } from '../../../src/main/temporal.js';
import { findTemporalCli, startTemporalServer, type TemporalServer } from '../../../src/main/temporal-server.js';
import { silentLogger } from '../../../src/telemetry/log.js';
import { reservePorts } from '../ports.js';
import { until } from '../until.js';

export interface TestTemporal {
  readonly server: TemporalServer;
  readonly cli: string;
  namespace(): Promise<{ name: string; temporal: TemporalClient }>;
  close(): Promise<void>;
}

let count = 0;

export async function startTestTemporal(): Promise<TestTemporal> {
  const cli = findTemporalCli(process.env['METALFLOW_TEMPORAL_CLI'] ?? null, process.env['PATH'] ?? '');
  const dir = mkdtempSync(join(tmpdir(), 'metalflow-temporal-'));
  const [port, uiPort] = (await reservePorts(2)) as [number, number];
  const server = await startTemporalServer({ cli, port, uiPort, dbFile: null, logFile: join(dir, 'temporal.log'), log: silentLogger() });
  const root = await connectTemporal({ connection: { address: server.address }, namespace: 'default' });
  const open: TemporalClient[] = [root];
  return {
    server,
    cli: cli!,
    async namespace() {
      const name = `test-${process.pid}-${++count}`;
      await root.connection.workflowService.registerNamespace({ namespace: name, workflowExecutionRetentionPeriod: { seconds: 86_400 as never } });
      const temporal = await connectTemporal({ connection: { address: server.address }, namespace: name });
      open.push(temporal);
      await usable(temporal);
      return { name, temporal };
    },
    async close() {
      for (const temporal of open) await temporal.close();
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A new namespace takes a moment to be known to every part of the server. */
async function usable({ connection, namespace }: TemporalClient): Promise<void> {
  await until(`namespace ${namespace} is usable`, async () => {
    await connection.workflowService.listOpenWorkflowExecutions({ namespace });
    return connection.operatorService.listSearchAttributes({ namespace });
  });
}
