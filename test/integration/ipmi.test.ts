/**
 * Our IPMI driver through Debian's ipmitool against OpenIPMI's ipmi_sim: neither was written for us. The simulator knows cipher suites
 * up to 3 only, so that each conversation begins with a refused suite 17; it keeps of a boot order the device alone, not the EFI flag and
 * not how often it is good for, and has no machine that could consume it.
 */
import { createPowerActivities } from '../../src/activities/power.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { createIpmiBmc } from '../../src/bmc/ipmi/client.js';
import { createProgram } from '../../src/bmc/ipmi/program.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { powerBench } from '../support/power-bench.js';
import { until } from '../support/until.js';
import { MACHINE_UUID, PASSWORD, requireIpmiTools, startIpmiSim, type IpmiSim } from '../support/ipmi-sim.js';

beforeAll(requireIpmiTools);

let sim: IpmiSim;
beforeEach(async () => void (sim = await startIpmiSim()));
afterEach(() => sim?.close());

describe.each(['admin', 'operator'])('as %s', (username) => {
  test('reads, powers on, arms one network boot and powers off', async () => {
    const bmc = sim.open({ username });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(await sim.bootFlags()).toMatch(/Boot Device Selector : Force PXE/);
    expect(await sim.bootFlags()).toMatch(/apply to only next boot/);
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'off-soft' });
    expect(await sim.told()).toEqual(['set boot pxe', 'set power 1', 'set power 0']);
  });
});

test('says which machine it is, in the byte order that fits the device, and who answers', async () => {
  const bmc = sim.open();
  expect(await bmc.machineUuid()).toEqual({ kind: 'read', uuid: MACHINE_UUID, byteOrder: 'smbios' });
  expect(await bmc.identify()).toEqual({ product: 'MontaVista Software, Inc. Unknown (0xF02)', version: 'firmware 9.08, IPMI 2.0' });
  expect(await bmc.capabilities()).toEqual({ bootOnceFromNetwork: true });
});

test.each([
  ['the password', { password: 'wrong' }, /password is wrong/],
  ['the user', { username: 'nobody' }, /no such user/],
  ['a password that IPMI cannot carry', { password: 'x'.repeat(21) }, /20 bytes/],
])('%s is wrong: bmc_auth_failed, and nothing is done', async (_what, credentials, why) => {
  const bmc = sim.open(credentials);
  expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_auth_failed', why: expect.stringMatching(why) });
  expect(await bmc.powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed' });
  expect(await sim.told()).toEqual([]);
});

test('a site that allows no SHA-1 is told which setting says so', async () => {
  expect(await sim.open({ cipherSuites: [17] }).powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_refused', why: expect.stringContaining('METALFLOW_IPMI_CIPHER_SUITES') });
});

test('a port where nothing answers is unreachable, and a command there was not sent', async () => {
  const bmc: Bmc = createIpmiBmc({ address: { type: 'ipmi', host: '127.0.0.1', port: 9 }, credentials: { username: 'admin', password: PASSWORD }, secret: 'bmc-ipmi', log: silentLogger(), timeouts: { tries: 1 } });
  expect(await bmc.powerOn()).toMatchObject({ kind: 'not-sent', why: expect.stringContaining('does not answer') });
  await bmc.close();
});

test('a BMC that is slower than the limit leaves a command unknown; ipmitool is ended, and the effect is seen later', async () => {
  await sim.wrong('busy');
  const bmc = sim.open({ timeouts: { runMs: 4000 } });
  expect(await bmc.powerOn()).toMatchObject({ kind: 'unknown', why: expect.stringContaining('no end within 4000 ms') });
  await sim.wrong('nothing');
  await until('it did what it was told', async () => (await sim.told()).includes('set power 1'));
  expect(await sim.open({ timeouts: { tries: 3 } }).observePower()).toEqual({ kind: 'read', power: 'on' });
});

test('a chassis that fails is no refusal: it may have obeyed', async () => {
  await sim.wrong('fails');
  const bmc = sim.open();
  expect(await bmc.powerOn()).toMatchObject({ kind: 'unknown', why: expect.stringContaining('Unspecified error') });
  expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_answer_invalid' });
});

test('without ipmitool the error names the Debian package', async () => {
  await expect(sim.open({ run: createProgram('/nowhere/ipmitool') }).observePower()).rejects.toMatchObject({ code: 'bmc_tool_missing' });
});

test('the activities of a run work unchanged: off and on are reached, off is read twice', async () => {
  const bench = powerBench({ type: 'ipmi', host: '127.0.0.1', port: sim.port }, MACHINE_UUID, async () => sim.open());
  await bench.throughALife(createPowerActivities(bench.deps));
  expect(await sim.told()).toEqual(['set boot pxe', 'set power 1', 'set power 0']);
});
