/** Every wait has a limit, and the limits fit each other. */
import { AMT_SETTLING_SECONDS } from '../../src/domain/power.js';
import { BOOT_ATTEMPTS, bmcTimes, DEFAULT_LIMITS, LIMITS, POWER_REQUESTS, REQUEST_SHARE_OF_LEASE, withLimits, type LimitName } from '../../src/domain/limits.js';

test.each(Object.entries(LIMITS))('%s is a positive number of seconds, and says of what', (_name, { seconds, of }) => {
  expect(Number.isFinite(seconds) && seconds > 0).toBe(true);
  expect(of.length).toBeGreaterThan(10);
});

test.each<[LimitName, number]>([
  ['planning', 3600], ['taking', 600], ['poweringOff', 120], ['poweringOn', 120], ['settling', 180], ['arming', 120], ['awaitingBoot', 600], ['awaitingAttestation', 600],
  ['actionDefault', 3600], ['actionMost', 86_400], ['agentSilence', 60], ['orderQueued', 300], ['disarming', 60], ['rebooting', 900], ['confirmingSeed', 1800], ['confirmingOff', 600],
  ['permissionLease', 300], ['permissionRenewal', 60], ['installCode', 3600], ['holdAlert', 3600], ['powerReadsApart', 5],
])('the default of %s is %i s', (name, seconds) => {
  expect(DEFAULT_LIMITS[name]).toBe(seconds);
});

test.each<[string, LimitName, LimitName]>([
  ['a lease is renewed several times before it ends', 'permissionRenewal', 'permissionLease'],
  ['a node that is slow to boot keeps its code for as long as its seed is waited for', 'confirmingSeed', 'installCode'],
  ['an action without a timeout stays below the most', 'actionDefault', 'actionMost'],
  ['a power state is read more than once before its limit', 'powerPoll', 'poweringOff'],
  ['both reads of a retirement fit into its limit', 'powerReadsApart', 'confirmingOff'],
  ['a session outlives its challenge', 'challenge', 'sessionToken'],
])('%s (%s is at most half of %s)', (_claim, less, more) => {
  expect(DEFAULT_LIMITS[less] * 2).toBeLessThanOrEqual(DEFAULT_LIMITS[more]);
});

test('a session lives as long as the longest action', () => {
  expect(DEFAULT_LIMITS.sessionToken).toBeGreaterThanOrEqual(DEFAULT_LIMITS.actionMost);
});
test('the silence of an AMT has one length', () => {
  expect(DEFAULT_LIMITS.settling).toBe(AMT_SETTLING_SECONDS);
});
test('overrides change what they name, and nothing else', () => {
  expect(withLimits({ taking: 1 })).toEqual({ ...DEFAULT_LIMITS, taking: 1 });
  expect(withLimits({})).toEqual(DEFAULT_LIMITS);
});
test('a boot is tried three times, a power request twice', () => {
  expect([BOOT_ATTEMPTS, POWER_REQUESTS]).toEqual([3, 2]);
});

test.each([[60, 20_000, 8000], [30, 20_000, 2500], [20, 14_250, 750], [2, 1425, 75]])('of a lease of %i s a driver may take %i ms, after a wait of %i ms for its turn: both end before the request is hung up on', (seconds, methodMs, turnMs) => {
  expect(bmcTimes(seconds)).toEqual({ methodMs, turnMs });
  expect(methodMs + turnMs).toBeLessThanOrEqual(seconds * 1000 * REQUEST_SHARE_OF_LEASE);
});
