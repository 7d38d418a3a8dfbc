/** The embedded Temporal server comes up, or says that it does not. Scripts stand in for its program. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTemporalCli, startTemporalServer, type TemporalServer } from '../../src/main/temporal-server.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { until } from '../support/until.js';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'metalflow-temporal-server-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const starts = (): string[] => readFileSync(join(folder, 'starts'), 'utf8').trim().split('\n');
/** Notes each start in a line of its own, then does as `then` says. */
function start(then: string): Promise<TemporalServer> {
  const cli = join(folder, 'temporal');
  writeFileSync(cli, `#!/bin/sh\necho "$@" >> ${folder}/starts\n${then}\n`);
  chmodSync(cli, 0o755);
  return startTemporalServer({ cli, port: 0, uiPort: 0, dbFile: null, logFile: join(folder, 'temporal.log'), log: silentLogger() });
}

test('one that finds a port taken is started again on others', async () => {
  const real = findTemporalCli(process.env['METALFLOW_TEMPORAL_CLI'] ?? null, process.env['PATH'] ?? '');
  const server = await start(`[ -e ${folder}/second ] || { touch ${folder}/second; echo 'address already in use' >&2; exit 1; }\nexec ${real} "$@"`);
  try {
    expect(starts()).toHaveLength(2);
    expect(starts()[1]).toContain(`--port ${server.address.split(':')[1]} `);
    expect(starts()[0]).not.toBe(starts()[1]);
  } finally {
    await server.close();
  }
});

test('one that never comes up is given up, and its own words are kept', async () => {
  await expect(start("echo 'no such option' >&2; exit 1")).rejects.toMatchObject({ code: 'temporal_unavailable', message: expect.stringContaining('temporal.log') });
  expect(starts()).toHaveLength(3);
  await until('its words', () => readFileSync(join(folder, 'temporal.log'), 'utf8').includes('no such option'));
});
