/** The driver against the simulator, over real sockets. */
import { PassThrough } from 'node:stream';
import { createAmtBmc } from '../../src/bmc/amt/client.js';
import { createConnection, type Connection } from '../../src/bmc/amt/connection.js';
import { createLogger, silentLogger } from '../../src/telemetry/log.js';
import { CREDENTIALS, startAmtBench, MACHINE_UUID, noSocketsLeft, ROOMY, type AmtBench } from '../support/amt.js';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';

let bench: AmtBench;
const start = async (options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench(options));
afterEach(async () => {
  // While the simulator still listens: it is the driver that has to hang up.
  await noSocketsLeft();
  await bench.close();
});

describe.each(['auth', 'auth-int, auth'] as const)('with qop="%s" (A1)', (qopProfile) => {
  test.each(['chunked', 'length'] as const)('a node is powered, armed, read and identified (answers: %s)', async (framing) => {
    const { amt, machine, open } = await start({ faults: { qopProfile, framing } });
    const bmc = open();
    expect(await bmc.identify()).toEqual({ product: 'Intel(r) AMT', version: '16.1.25' });
    expect(await bmc.machineUuid()).toEqual({ kind: 'read', uuid: MACHINE_UUID });
    expect(await bmc.capabilities()).toEqual({ bootOnceFromNetwork: true });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    await amt.settled();
    expect(machine).toEqual(['on network', 'off']);
    expect(amt.counts()).toMatchObject({ byValue: { 2: 1, 8: 1 }, refusedLogins: 0, maxInFlight: 1 });
  });
});

describe('arming one network boot', () => {
  test("looks whether it can be done, goes in Intel's order, sends no power command, and is used up by one boot", async () => {
    const { amt, machine, open } = await start();
    const bmc = open();
    await bmc.bootOnceFromNetwork();
    expect(amt.counts().calls).toEqual(['Get AMT_BootCapabilities', 'Get IPS_HostBasedSetupService', 'Get AMT_BootSettingData', 'ChangeBootOrder', 'Put AMT_BootSettingData', 'SetBootConfigRole', 'ChangeBootOrder']);
    expect(amt.counts().byValue).toEqual({});
    expect(amt.armed()).toEqual({ role: 1, source: 'Intel(r) AMT: Force PXE Boot', boot: 'network' });
    for (const _boot of ['network', 'disk']) {
      await bmc.powerOn();
      await bmc.powerOff();
    }
    await amt.settled();
    expect(machine).toEqual(['on network', 'off', 'on disk', 'off']);
    expect(amt.armed()).toEqual({ role: 32_768, source: null, boot: 'disk' });
  });

  test('clears a source and settings that somebody left behind (failure modes 1 and 2)', async () => {
    const { amt, open } = await start({ bootSettings: { BIOSSetup: 'true', UseIDER: 'true', BootMediaIndex: '3' } });
    expect(await open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(amt.armed().boot).toBe('network');
  });

  test('may be done again: the second order replaces the first', async () => {
    const { amt, open } = await start();
    const bmc = open();
    await bmc.bootOnceFromNetwork();
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(amt.armed().boot).toBe('network');
  });

  test.each(['ChangeBootOrder', 'SetBootConfigRole'])('a ReturnValue of %s inside HTTP 200 is a refusal that names step, value and meaning', async (step) => {
    const { amt, open } = await start({ faults: { refuse: { [step]: 5 } } });
    expect(await open().bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step, value: '5', meaning: expect.stringContaining('invalid parameter') } });
    expect(amt.armed().boot).toBe('disk');
  });

  test.each(['SetBootConfigRole', 'ChangeBootOrder', 'Put'])('a lost answer to %s leaves the outcome open, and arming again heals it', async (dropAnswersOf) => {
    const { amt, open } = await start({ faults: { dropAnswersOf } });
    expect(await open().bootOnceFromNetwork()).toMatchObject({ kind: 'unknown' });
    await amt.setFaults({ dropAnswersOf: null });
    expect(await open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(amt.armed().boot).toBe('network');
  });

  test.each([
    // The first request fetches the challenge, the next three only read.
    [2, 'not-sent'],
    [4, 'not-sent'],
    [5, 'unknown'],
    [7, 'unknown'],
  ] as const)('by a BMC that vanishes after %i requests is %s: "nothing happened" is said only where it is true', async (requests, kind) => {
    const { amt } = await start();
    const real = createConnection({ origin: `http://${amt.host}:${amt.port}`, timeouts: ROOMY });
    let left = requests;
    const connection: Connection = { send: async (request) => (left-- > 0 ? real.send(request) : { kind: 'not-connected', code: 'bmc_unreachable', why: 'no route to the host' }) };
    const bmc = createAmtBmc({ address: { type: 'amt', host: amt.host, port: amt.port }, credentials: CREDENTIALS, secret: 'bmc-amt', log: silentLogger(), timeouts: { ...ROOMY, tries: 1 }, connection });
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind, why: 'no route to the host' });
    await bmc.close();
  });

  test('in client control mode is refused with what to change, before anything is changed', async () => {
    const { amt, open } = await start({ faults: { ccmAccessDenied: true } });
    const bmc = open();
    expect(await bmc.capabilities()).toMatchObject({ bootOnceFromNetwork: false, why: expect.stringContaining('admin control mode') });
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step: 'one-time network boot', value: 'client control mode', meaning: expect.stringContaining('provision it in admin control mode') } });
    expect(amt.counts().calls.filter((call) => !call.startsWith('Get'))).toEqual([]);
  });

  test('is impossible where the firmware has no network boot', async () => {
    const { open } = await start({ faults: { noPxe: true } });
    const bmc = open();
    expect(await bmc.capabilities()).toMatchObject({ bootOnceFromNetwork: false, why: expect.stringContaining('enable network boot in the firmware') });
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why: expect.stringContaining('ForcePXEBoot') });
  });

  test('goes on where the firmware is too old to have control modes or boot capabilities', async () => {
    const { amt, open } = await start({ faults: { absentClasses: ['IPS_HostBasedSetupService', 'AMT_BootCapabilities'] } });
    expect(await open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(amt.armed().boot).toBe('network');
  });
});

describe('power on for a boot from the network (A3)', () => {
  test.each([
    ['off-soft', ['on network']],
    ['off-hard', ['on network']],
    // A wake is no boot: the run powers off first, and the order stays armed until then.
    ['hibernate', []],
    ['sleep-deep', []],
    ['sleep-light', []],
  ] as const)('from %s is one RequestPowerStateChange 2', async (initialPower, told) => {
    const { amt, machine, open } = await start({ initialPower });
    const bmc = open();
    await bmc.bootOnceFromNetwork();
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    await amt.settled();
    expect(amt.counts().byValue).toEqual({ 2: 1 });
    expect(machine).toEqual(told);
  });

  test.each(['hibernate', 'sleep-deep', 'sleep-light', 'on'] as const)('from %s goes by 8 and then 2: 5 and 10 are never sent', async (initialPower) => {
    const { amt, machine, open } = await start({ initialPower });
    const bmc = open();
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    await bmc.bootOnceFromNetwork();
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    await amt.settled();
    expect(amt.counts().byValue).toEqual({ 2: 1, 8: 1 });
    expect(machine).toEqual(['off', 'on network']);
  });
});

describe('off is read back (A5)', () => {
  test('an accepted off that shows at the fourth read ends at the fourth read', async () => {
    const { open } = await start({ initialPower: 'on', faults: { lagReads: 3 } });
    const bmc = open();
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    const reads = [];
    for (let poll = 1; poll <= 4; poll += 1) reads.push(await bmc.observePower());
    expect(reads.map((reading) => reading.kind === 'read' && reading.power)).toEqual(['on', 'on', 'on', 'off-soft']);
  });
  test('an off that never comes keeps reading on', async () => {
    const { amt, machine, open } = await start({ initialPower: 'on', faults: { neverOff: true } });
    const bmc = open();
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    expect([amt.power(), machine]).toEqual(['on', []]);
  });
  test('ReturnValue 2 is a refusal with its meaning', async () => {
    const { machine, open } = await start({ initialPower: 'on', faults: { refuse: { RequestPowerStateChange: 2 } } });
    expect(await open().powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step: 'RequestPowerStateChange', value: '2', meaning: expect.stringContaining('KVM') } });
    expect(machine).toEqual([]);
  });
  test('a BMC that is gone after the command is unknown, never off', async () => {
    const { amt, open } = await start({ initialPower: 'on' });
    const bmc = open();
    await bmc.powerOff();
    await amt.setFaults({ unreachable: true });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: 'connection refused' });
    await amt.setFaults({ unreachable: false });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  });
  test.each(['hibernate', 'sleep-deep', 'sleep-light'] as const)('%s reads as itself', async (initialPower) => {
    const { open } = await start({ initialPower });
    expect(await open().observePower()).toEqual({ kind: 'read', power: initialPower });
  });
});

describe('what the operating system does while the power reads on', () => {
  test.each([
    ['on', false, { osPowerSaving: 'full' }],
    ['on', true, { osPowerSaving: 'saving' }],
    ['off-soft', true, {}],
  ] as const)('%s and saving power (%s) is shown by the capabilities, and changes no reading', async (initialPower, osSavesPower, shown) => {
    const { open } = await start({ initialPower, faults: { osSavesPower } });
    const bmc = open();
    expect(await bmc.capabilities()).toEqual({ bootOnceFromNetwork: true, ...shown });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: initialPower });
  });
  test('is nothing where the firmware has no such class', async () => {
    const { open } = await start({ initialPower: 'on', faults: { absentClasses: ['IPS_PowerManagementService'] } });
    expect(await open().capabilities()).toEqual({ bootOnceFromNetwork: true });
  });
});

describe('the machine behind the BMC', () => {
  test('is another one when the GUID says so', async () => {
    const { open } = await start({ faults: { otherUuid: '11111111-2222-3333-4444-555555555555' } });
    expect(await open().machineUuid()).toEqual({ kind: 'read', uuid: '11111111-2222-3333-4444-555555555555' });
  });
  test('is unreadable when the vendor left the GUID unset', async () => {
    const { open } = await start({ faults: { otherUuid: 'ffffffff-ffff-ffff-ffff-ffffffffffff' } });
    expect(await open().machineUuid()).toMatchObject({ kind: 'unreadable' });
  });
  test('has changed when the realm does: an error that names both, and no command', async () => {
    const { amt, open } = await start({ initialPower: 'on' });
    const bmc = open();
    await bmc.observePower();
    await amt.setFaults({ otherRealm: 'F'.repeat(32) });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_answer_invalid', why: expect.stringMatching(/realm changed from Digest:\w{32} to Digest:F{32}/) });
    expect(amt.counts().byValue).toEqual({});
    expect(await open().observePower()).toEqual({ kind: 'read', power: 'on' });
  });
});

test('a closed Bmc sends nothing more', async () => {
  const { amt, open } = await start({ initialPower: 'on' });
  const bmc = open();
  await bmc.close();
  expect(await bmc.powerOff()).toMatchObject({ kind: 'not-sent' });
  expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
  expect(amt.counts().requests).toBe(0);
});

test('no log line, however chatty, holds the password or an answer to a challenge', async () => {
  const { open } = await start({ faults: { nonceResetEvery: 1, sleepFirstN: 1 } });
  const lines = new PassThrough();
  const bmc = open({ log: createLogger({ level: 'trace', role: 'worker', destination: lines }) });
  await bmc.bootOnceFromNetwork();
  await bmc.powerOn();
  const log = String(lines.read());
  expect(log).toContain('RequestPowerStateChange');
  expect(log).not.toMatch(new RegExp(`${CREDENTIALS.password.replace('!', '\\!')}|response=|Authorization`, 'i'));
});
