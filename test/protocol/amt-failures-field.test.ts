/** The ten failures that AMTs were seen to have in the field, each by its number in the issue, against the simulator's switches. */
import type { AmtFaults } from '../../src/simulator/amt/faults.js';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await noSocketsLeft();
  await Promise.all(closers.splice(0).map((close) => close()));
});
async function start(faults: Partial<AmtFaults> = {}, options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> {
  const bench = await startAmtBench({ initialPower: 'on', faults, ...options });
  closers.push(() => bench.close());
  return bench;
}

test('failure mode 1: what another tool left half armed is cleared first, and the boot from the network is the next one, not the one after (mps#752)', async () => {
  const { amt, machine, open } = await start({}, { initialPower: 'off-soft', bootSettings: { BIOSSetup: 'true', UseIDER: 'true', BootMediaIndex: '2' } });
  const bmc = open();
  expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
  expect(amt.armed()).toEqual({ role: 1, source: 'Intel(r) AMT: Force PXE Boot', boot: 'network' });
  for (const _boot of ['network', 'disk']) {
    await bmc.powerOn();
    await bmc.powerOff();
  }
  await amt.settled();
  expect(machine).toEqual(['on network', 'off', 'on disk', 'off']);
});

test('failure mode 2: a second order wins over the first, though AMT keeps the first source until it is cleared (Ironic)', async () => {
  const { amt, open } = await start({ sourceRule: 'first-wins' });
  const bmc = open();
  expect([await bmc.bootOnceFromNetwork(), await bmc.bootOnceFromNetwork()]).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
  expect(amt.armed().boot).toBe('network');
  expect(amt.counts().calls.filter((call) => call === 'ChangeBootOrder')).toHaveLength(4);
});

test('failure mode 3: a refusal inside HTTP 200 is a refusal, named with its value; 5, 10, 12 and 14 are never sent (sdague/amt#16, #21, #28)', async () => {
  const { amt, open } = await start({}, { initialPower: 'off-soft' });
  expect(await open().powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step: 'RequestPowerStateChange', value: '2' } });
  expect(amt.counts().byValue).toEqual({ 8: 1 });
  expect(amt.power()).toBe('off-soft');
});

test('failure mode 4: client control mode is refused before AMT can say yes and boot something else (deployment#291)', async () => {
  const { amt, open } = await start({ ccmAccessDenied: true });
  expect(await open().bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why: expect.stringContaining('admin control mode') });
  expect(amt.counts().calls.filter((call) => !call.startsWith('Get '))).toEqual([]);
});

test.each([
  ['that drops what wakes it', { sleepFirstN: 2 }],
  ['that fell asleep by idleness', { sleepAfterIdleMs: 60_000, wakeConnections: 2 }],
] as const)('failure mode 5: an ME %s is woken, read, and commanded once (MeshCentral#729, #1558)', async (_name, faults) => {
  let at = Date.parse('2030-01-01T00:00:00Z');
  const { amt, open } = await start(faults, { initialPower: 'off-soft', now: () => new Date(at) });
  const bmc = open({ now: () => new Date(at) });
  expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  at += 120_000;
  expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  at += 120_000;
  expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
  expect(amt.counts().byValue).toEqual({ 2: 1 });
});

test('failure mode 6: the old state after an accepted change is told as it is read, and no second change is sent for it', async () => {
  const { amt, open } = await start({ lagReads: 3 });
  const bmc = open();
  expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
  const reads = [];
  for (let read = 1; read <= 4; read += 1) reads.push(await bmc.observePower());
  expect(reads.map((reading) => reading.kind === 'read' && reading.power)).toEqual(['on', 'on', 'on', 'off-soft']);
  expect(amt.counts().byValue).toEqual({ 8: 1 });
});

test('failure mode 7: an off that an open KVM session forbids is a refusal that says so (MeshCentral#4768)', async () => {
  const { amt, machine, open } = await start({ redirectionOpen: true });
  const bmc = open();
  expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { value: '2', meaning: expect.stringContaining('KVM') } });
  expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
  await amt.settled();
  expect(machine).toEqual([]);
});

test.each(['auth', 'auth-int, auth', 'auth, auth-int'] as const)('failure mode 8: the challenge qop="%s" is answered with auth, at the first try (rps#779, A1)', async (qopProfile) => {
  const { amt, open } = await start({ qopProfile });
  expect(await open().observePower()).toEqual({ kind: 'read', power: 'on' });
  expect(amt.counts()).toMatchObject({ requests: 2, refusedLogins: 0 });
});

test('failure mode 9: power is read where everything else that is optional is absent (mps#2278)', async () => {
  const { open } = await start({ onlyPowerState: true, absentClasses: ['IPS_PowerManagementService'] }, { initialPower: 'off-soft' });
  const bmc = open();
  expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  expect(await bmc.capabilities()).toEqual({ bootOnceFromNetwork: true });
});

test('failure mode 10: the shared NIC that settles after a change is unknown, never off, and the command is not sent again (MeshCommander#16, MeshCentral#3890)', async () => {
  const { amt, open } = await start();
  const bmc = open({ timeouts: { tries: 2 } });
  await amt.setFaults({ settlingMs: 3_600_000 });
  await bmc.powerOff();
  expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
  expect(amt.counts().byValue).toEqual({ 8: 1 });
});
