/** What `metalflow bmc doctor` finds in an AMT, against the simulator's switches. */
import type { BmcFinding } from '../../src/contracts/bmc.js';
import { noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';

let bench: AmtBench;
const start = async (options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench({ initialPower: 'on', ...options }));
afterEach(async () => {
  await noSocketsLeft();
  await bench.close();
});

const NOW = new Date('2030-01-01T00:00:00Z');
const results = (findings: BmcFinding[]): Record<string, string> => Object.fromEntries(findings.map(({ about, result }) => [about, result]));
const GOOD = {
  version: 'good', provisioning: 'good', 'control-mode': 'good', 'boot-capability': 'good', address: 'good', 'link-when-off': 'good', 'power-policy': 'good', clock: 'good', 'os-power-saving': 'good',
};

test('an AMT as it should be is good in all', async () => {
  const { amt, open } = await start({ now: () => NOW });
  const findings = await open({ now: () => NOW }).diagnose({ addresses: ['192.0.2.9'] });
  expect(results(findings)).toEqual(GOOD);
  expect(findings).toContainEqual({ about: 'version', version: '16.1.25', result: 'good', found: 'AMT 16.1.25' });
  expect(findings).toContainEqual(expect.objectContaining({ about: 'power-policy', policy: 'Desktop: ON in S0, ME Wake in S3, S4-5', source: 'mains', idleMinutes: 1 }));
  expect(findings).toContainEqual(expect.objectContaining({ about: 'clock', skewSeconds: 0 }));
  expect(amt.counts().byValue).toEqual({});
});

test.each([
  ['client control mode', { ccmAccessDenied: true }, { 'control-mode': 'bad', provisioning: 'warning' }],
  ['no network boot', { noPxe: true }, { 'boot-capability': 'bad' }],
  ["the host's static address", { hostsStaticAddress: true }, { address: 'bad' }],
  ['an ME that sleeps with the host', { sleepsWithHost: true }, { 'link-when-off': 'bad', 'power-policy': 'bad' }],
  ['a battery', { onBattery: true }, { 'power-policy': 'warning' }],
  ['a clock an hour ahead', { clockSkewSeconds: 3600 }, { clock: 'warning' }],
  ['a refused clock', { refuse: { GetLowAccuracyTimeSynch: 1 } }, { clock: 'unknown' }],
  ['a sleeping operating system', { osSavesPower: true }, { 'os-power-saving': 'warning' }],
  ['old firmware without these classes', { absentClasses: ['IPS_HostBasedSetupService', 'IPS_PowerManagementService', 'CIM_SoftwareIdentity', 'AMT_SystemPowerScheme'] }, { 'control-mode': 'unknown', 'os-power-saving': 'unknown', version: 'unknown', 'power-policy': 'unknown' }],
] as const)('%s is found, and nothing else', async (_name, faults, found) => {
  const { open } = await start({ now: () => NOW, faults });
  expect(results(await open({ now: () => NOW }).diagnose())).toEqual({ ...GOOD, ...found });
});

test("the host's address as NetBox has it is found too", async () => {
  const { amt, open } = await start({ faults: { hostsStaticAddress: true } });
  expect(await open().diagnose({ addresses: [amt.host] })).toContainEqual(expect.objectContaining({ about: 'address', address: amt.host, isHosts: true, hint: expect.stringContaining('address of its own') }));
});

test.each([
  ['is gone', true, undefined, 'connection refused', 0],
  ['refuses the password', false, 'wrong', 'refuses the credentials', 3],
] as const)('an AMT that %s is asked once, and every look says why it is unknown', async (_name, unreachable, password, why, requests) => {
  const { amt, open } = await start();
  await amt.setFaults({ unreachable });
  const findings = await open({ timeouts: { tries: 1 }, ...(password && { password }) }).diagnose();
  expect(findings).toHaveLength(Object.keys(GOOD).length);
  expect(findings.filter(({ result, found }) => result !== 'unknown' || !found.includes(why))).toEqual([]);
  expect(amt.counts().requests).toBe(requests);
});

test('answers that are none leave every look unknown, and end', async () => {
  const { open } = await start({ faults: { answerAs: 'html' } });
  expect(new Set(Object.values(results(await open().diagnose())))).toEqual(new Set(['unknown']));
});
