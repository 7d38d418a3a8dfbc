/** What is counted of all runs (B10): ends, phases, holds and passed limits, each once and for good, and as Prometheus reads it. */
import { Registry } from 'prom-client';
import { failure } from '../../src/domain/errors.js';
import { LIMITS } from '../../src/domain/limits.js';
import { addRunCounters } from '../../src/main/run-metrics.js';
import type { TallyName } from '../../src/contracts/tally.js';
import { createStore } from '../../src/store/index.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const counted = async (what: TallyName): Promise<[string, number, number][]> =>
  (await bench.store.tally.all()).filter((row) => row.what === what).map(({ labels, times, seconds }) => [Object.values(labels).join(' '), times, seconds]);
const notSeen = failure('boot_not_seen', { attempts: 3 });

test('an end counts once, with its kind, end, code and the seconds since the run was opened, whoever writes it again', async () => {
  const failed = await bench.begin('wipe');
  bench.pass(90);
  for (const ref of [failed, null]) await bench.store.runs.close('7', failed.run, { end: 'failed', failure: notSeen, destroyed: false }, ref);
  for (const seconds of [10, 20]) {
    const { run } = await bench.begin();
    bench.pass(seconds);
    await bench.store.runs.close('7', run, { end: 'done', failure: null, destroyed: true }, null);
  }
  expect(await counted('run-ended')).toEqual([['boot_not_seen failed wipe', 1, 90], ['none done provision', 2, 30]]);
});

test('a phase counts when it is left, once for all the times it was entered anew, with the seconds in it', async () => {
  const ref = await bench.begin();
  bench.pass(5);
  await bench.store.runs.enterPhase(ref, 'planning', '');
  bench.pass(5);
  await bench.store.runs.enterPhase(ref, 'taking', '');
  bench.pass(2);
  await bench.store.runs.enterPhase(await bench.reset(ref), 'taking', 'after a reset');
  bench.pass(2);
  await bench.store.runs.close('7', ref.run, { end: 'cancelled', failure: null, destroyed: false }, null);
  expect(await counted('phase-left')).toEqual([['provision planning', 1, 10], ['provision taking', 1, 4]]);
});

test('a hold counts when it begins, of a run or of a node without one, and not again while it lasts', async () => {
  const ref = await bench.begin();
  const stillOn = failure('bmc_still_on', { power: 'on' });
  for (const hold of [stillOn, stillOn, null, stillOn]) await bench.store.runs.setHold(ref, hold);
  const invalid = failure('device_invalid', { field: 'system_uuid', what: 'is no UUID' });
  for (let times = 0; times < 2; times++) await bench.store.devices.setState('7', { state: 'planned', previousState: null, hold: invalid, because: 'x' });
  await bench.store.installation.mismatch('another Temporal');
  expect(await counted('held')).toEqual([['bmc_still_on', 2, 0], ['device_invalid', 1, 0], ['installation_mismatch', 1, 0]]);
});

describe('a passed limit counts, by its name,', () => {
  const limits = (): Promise<[string, number, number][]> => counted('limit-passed');

  test('when a run holds or fails for it', async () => {
    const ref = await bench.begin();
    await bench.store.runs.setHold(ref, failure('bmc_still_on', { power: 'on' }));
    await bench.store.runs.close('7', ref.run, { end: 'failed', failure: failure('agent_lost', { since: 'noon' }), destroyed: false }, ref);
    expect(await limits()).toEqual([['agentSilence', 1, 0], ['poweringOff', 1, 0]]);
  });

  test('when a boot is tried again that was never seen, or never attested, though the run goes on', async () => {
    const ref = await bench.begin();
    await bench.store.attempts.open(ref);
    const { bootAttempt } = await bench.store.attempts.open(ref);
    await bench.store.boot.recordBootSeen(bootAttempt);
    await bench.boot(ref);
    await bench.store.runs.close('7', ref.run, { end: 'done', failure: null, destroyed: true }, ref);
    expect(await limits()).toEqual([['awaitingAttestation', 1, 0], ['awaitingBoot', 1, 0]]);
  });

  test('and not when a reset, or a cancellation, ended the wait', async () => {
    const ref = await bench.begin();
    await bench.store.attempts.open(ref);
    const again = await bench.reset(ref);
    await bench.store.attempts.open(again);
    await bench.store.runs.close('7', ref.run, { end: 'cancelled', failure: failure('run_cancelled', { by: 'ann' }), destroyed: false }, again);
    expect(await limits()).toEqual([]);
  });
});

test('what took its transaction back was not counted', async () => {
  const ref = await bench.begin();
  const stale = { ...ref, temporalRunId: 'a former one' };
  await expect(bench.store.runs.setHold(stale, notSeen)).rejects.toMatchObject({ code: 'run_stale' });
  expect(await bench.store.tally.all()).toEqual([]);
});

test('Prometheus reads it: counters that go on where they were after a restart, every limit from zero', async () => {
  const scrape = async (store = bench.store): Promise<string[]> => {
    const registry = new Registry();
    addRunCounters(registry, store.tally);
    await registry.metrics();
    return (await registry.metrics()).split('\n').filter((line) => line.startsWith('metalflow_'));
  };
  expect(await scrape()).toEqual(Object.keys(LIMITS).map((limit) => `metalflow_limits_passed_total{limit="${limit}"} 0`));
  const ref = await bench.begin();
  bench.pass(60);
  await bench.store.runs.setHold(ref, failure('bmc_still_on', { power: 'on' }));
  await bench.store.runs.close('7', ref.run, { end: 'failed', failure: notSeen, destroyed: false }, ref);
  const restarted = createStore({ db: bench.db, temporal: { look: async () => ({ kind: 'absent' }) } });
  expect(await scrape(restarted)).toEqual(expect.arrayContaining([
    'metalflow_runs_ended_total{code="boot_not_seen",end="failed",kind="provision"} 1', 'metalflow_run_seconds_total{code="boot_not_seen",end="failed",kind="provision"} 60',
    'metalflow_phases_left_total{kind="provision",phase="planning"} 1', 'metalflow_phase_seconds_total{kind="provision",phase="planning"} 60', 'metalflow_holds_total{code="bmc_still_on"} 1',
    'metalflow_limits_passed_total{limit="poweringOff"} 1', 'metalflow_limits_passed_total{limit="awaitingBoot"} 1',
  ]));
});
