/** What the power should read in each state, and what is told when it does not. */
import { EXPECTED_POWER, isSameDrift, judgePower } from '../../src/domain/power-expected.js';
import { POWER_WORDS, type PowerWord } from '../../src/domain/power.js';
import { LIFECYCLE_STATES, RUNNING_STATES, WAITING_STATES, type LifecycleState } from '../../src/domain/states.js';

test.each<[LifecycleState, PowerWord, 'fits' | 'drift' | 'no-expectation' | 'says-nothing']>([
  ['active', 'on', 'fits'], ['active', 'off', 'drift'], ['active', 'sleeping', 'drift'],
  ['available', 'off', 'fits'], ['available', 'on', 'drift'],
  ['retired', 'off', 'fits'], ['retired', 'on', 'drift'], ['retired', 'sleeping', 'drift'],
  ['retired-unproven', 'on', 'drift'],
  ['planned', 'on', 'no-expectation'], ['failed', 'off', 'no-expectation'], ['withdrawn', 'unknown', 'no-expectation'],
])('a node that is %s and reads %s: %s', (state, power, verdict) => {
  expect(judgePower(state, power).kind).toBe(verdict);
});
test.each<PowerWord>(['unknown', 'settling'])('%s is no drift, and the end of none', (power) => {
  for (const state of ['active', 'available', 'retired'] as const) expect(judgePower(state, power)).toEqual({ kind: 'says-nothing' });
});
test('whoever owns the power, a run or a person, finds no drift', () => {
  for (const state of [...RUNNING_STATES, ...WAITING_STATES]) for (const power of POWER_WORDS) expect(judgePower(state, power)).toEqual({ kind: 'no-expectation' });
});
test('every state says why it expects what it expects', () => {
  expect(Object.keys(EXPECTED_POWER).sort()).toEqual([...LIFECYCLE_STATES].sort());
  for (const { because } of Object.values(EXPECTED_POWER)) expect(because).toMatch(/^[a-z]/);
});
test('a drift is the same when state, expectation and reading are', () => {
  const drift = { state: 'active', expected: 'on', reads: 'off' } as const;
  expect([isSameDrift(drift, { ...drift }), isSameDrift(null, null), isSameDrift(drift, null), isSameDrift(drift, { ...drift, reads: 'sleeping' })]).toEqual([true, true, false, false]);
});
