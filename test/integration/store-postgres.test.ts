/** The store on PostgreSQL, which a site in production shape has: made, found, and used through one run as on SQLite. */
import { readConfig } from '../../src/config/config.js';
import { failure } from '../../src/domain/errors.js';
import { findStore } from '../../src/main/open-store.js';
import { createStore, openDatabase, openMadeDatabase, type Store } from '../../src/store/index.js';
import { startPostgres, type Postgres } from '../support/postgres.js';
import { deviceOf, WIPE } from '../support/store-bench.js';

let postgres: Postgres;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres?.close());

const RUN_ID = 'temporal-run-1';
const open = async (): Promise<Store> => createStore({ db: await openDatabase(postgres.url), temporal: { look: async () => ({ kind: 'running', runId: RUN_ID }) } });

test('a person who asks before a role made the store is refused, makes none, and reads no password (A9)', async () => {
  const { store, lacks } = await findStore(readConfig({ METALFLOW_DATABASE_URL: postgres.url }, 'cli'));
  await store.close();
  expect(lacks).toMatchObject({ code: 'store_not_found', message: expect.stringMatching(/in postgres:\/\/127\.0\.0\.1:\d+\/postgres: /) });
  expect(await openMadeDatabase(postgres.url)).toBeNull();
});

test('the first role makes it, and a run goes from its opening to its end: fence, boot, order, hold, tally', async () => {
  const store = await open();
  try {
    await store.installation.begin('installation-a');
    await store.installation.confirm();
    await store.devices.register(deviceOf({ id: '7' }), { state: 'planned', adopted: false });
    const { run, workflowId } = await store.runs.open('7', 'wipe', { asked: { how: 'netbox' }, intake: null });
    const ref = { deviceId: '7', run, workflowId, temporalRunId: RUN_ID };
    await store.fence.enter(ref);
    await store.runs.enterPhase(ref, 'taking', '');
    await store.attempts.open(ref);
    const { bootAttempt } = await store.attempts.open(ref);
    await store.permissions.lease(ref, bootAttempt, 300);
    await store.boot.recordBootSeen(bootAttempt);
    await expect(store.orders.post(ref, { bootAttempt, title: 'wipe', action: WIPE, destructive: true, timeoutSeconds: 600, queueSeconds: 300, grantUnknown: null })).rejects.toMatchObject({ code: 'attempt_unattested' });
    await store.runs.setHold(ref, failure('bmc_still_on', { power: 'on' }));
    await store.runs.close('7', run, { end: 'failed', failure: failure('agent_lost', { since: 'noon' }), destroyed: false }, ref);
    const counted = (await store.tally.all()).map(({ what, labels, times }) => [what, ...Object.values(labels), times]);
    expect(counted).toEqual([
      ['held', 'bmc_still_on', 1], ['limit-passed', 'agentSilence', 1], ['limit-passed', 'awaitingBoot', 1], ['limit-passed', 'poweringOff', 1],
      ['phase-left', 'wipe', 'planning', 1], ['phase-left', 'wipe', 'taking', 1], ['run-ended', 'agent_lost', 'failed', 'wipe', 1],
    ]);
    expect(await store.nodes.list({})).toMatchObject([{ deviceId: '7', openRun: null }]);
  } finally {
    await store.close();
  }
});

test('whoever opens it again finds what is there', async () => {
  const { store, lacks } = await findStore(readConfig({ METALFLOW_DATABASE_URL: postgres.url }, 'cli'));
  try {
    expect([lacks, await store.installation.read()]).toEqual([null, { id: 'installation-a', status: 'confirmed', why: null }]);
  } finally {
    await store.close();
  }
});
