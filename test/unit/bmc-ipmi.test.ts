/** What ipmitool says, and what a run makes of it. The words are those that ipmitool 1.8.19 printed against ipmi_sim and in bug reports. */
import { createIpmiBmc } from '../../src/bmc/ipmi/client.js';
import { readGuid } from '../../src/bmc/ipmi/guid.js';
import type { ProgramCall, ProgramEnd } from '../../src/bmc/ipmi/program.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { silentLogger } from '../../src/telemetry/log.js';

const UUID = '4c4c4544-0039-3010-8048-b7c04f4d4b32';
const NO_SESSION = 'Error: Unable to establish IPMI v2 / RMCP+ session';
const CHATTER = 'Loading IANA PEN Registry...\nGet HPM.x Capabilities request failed, compcode = d4\nRunning Get VSO Capabilities my_addr 0x20, transit 0, target 0x20\nInvalid completion code received: Insufficient privilege level\nDiscovered IPMB address 0x0\n';

const said = (stdout: string, stderr = '', exit = 0): ProgramEnd => ({ kind: 'ended', exit, stdout, stderr: CHATTER + stderr });

/** A BMC behind an ipmitool by script: each answer once, the last for ever. */
function scripted(...answers: ProgramEnd[]): { bmc: Bmc; calls: ProgramCall[] } {
  const calls: ProgramCall[] = [];
  const bmc = createIpmiBmc({
    address: { type: 'ipmi', host: '10.0.0.9', systemUuid: UUID }, credentials: { username: 'admin', password: 'hunter2' }, secret: 'bmc-ipmi', log: silentLogger(), timeouts: { pauseMs: 1 },
    run: async (call) => (calls.push(call), answers.length > 1 ? answers.shift()! : answers[0]!),
  });
  return { bmc, calls };
}
const commandOf = ({ args }: ProgramCall): string => args.slice(args.indexOf('-v') + 1).join(' ');

describe('a good answer', () => {
  test.each([['on', 'on'], ['off', 'off-soft']])('Chassis Power is %s reads %s', async (word, power) => {
    const { bmc, calls } = scripted(said(`Chassis Power is ${word}\n`));
    expect(await bmc.observePower()).toEqual({ kind: 'read', power });
    expect(calls.map(({ args }) => args.join(' '))).toEqual(['-I lanplus -H 10.0.0.9 -p 623 -U admin -E -L OPERATOR -C 17 -N 1 -R 2 -v chassis power status']);
  });
  test.each([
    ['power on', 'Chassis Power Control: Up/On\n', (bmc: Bmc) => bmc.powerOn(), 'chassis power on'],
    ['power off', 'Chassis Power Control: Down/Off\n', (bmc: Bmc) => bmc.powerOff(), 'chassis power off'],
    ['one network boot', 'Set Boot Device to pxe\n', (bmc: Bmc) => bmc.bootOnceFromNetwork(), 'chassis bootdev pxe options=efiboot'],
    // ipmitool could not end its session afterwards; the BMC had said yes.
    ['power off, and exit 1', 'Chassis Power Control: Down/Off\n', (bmc: Bmc) => bmc.powerOff(), 'chassis power off'],
  ])('%s is accepted', async (what, stdout, ask, command) => {
    const { bmc, calls } = scripted(said(stdout, 'Close Session command failed\n', what.endsWith('1') ? 1 : 0));
    expect(await ask(bmc)).toEqual({ kind: 'accepted' });
    expect(calls.map(commandOf)).toEqual([command]);
  });
  test('says who answers', async () => {
    const { bmc } = scripted(said('Device ID                 : 0\nFirmware Revision         : 9.08\nIPMI Version              : 2.0\nManufacturer Name         : MontaVista Software, Inc.\nProduct Name              : Unknown (0xF02)\n'));
    expect(await bmc.identify()).toEqual({ product: 'MontaVista Software, Inc. Unknown (0xF02)', version: 'firmware 9.08, IPMI 2.0' });
  });
});

describe('the words of a failure, for a read and for a power command', () => {
  test.each<[words: string, code: string, command: 'refused' | 'not-sent' | 'unknown', why: RegExp]>([
    [`> RAKP 2 HMAC is invalid\n${NO_SESSION}`, 'bmc_auth_failed', 'refused', /bmc-ipmi: the password is wrong/],
    [`RAKP 2 message indicates an error : unauthorized name\n${NO_SESSION}`, 'bmc_auth_failed', 'refused', /no such user/],
    ['lanplus: password is longer than 20 bytes.', 'bmc_auth_failed', 'refused', /20 bytes/],
    [`RAKP 2 message indicates an error : unauthorized role or privilege level requested\n${NO_SESSION}`, 'bmc_refused', 'refused', /give it OPERATOR/],
    ['Set Session Privilege Level to OPERATOR failed: Requested privilege level exceeds limit', 'bmc_refused', 'refused', /give it OPERATOR/],
    [`Error in open session response message : insufficient resources to create new session\n${NO_SESSION}`, 'bmc_refused', 'refused', /sessions are taken/],
    [`This BMC does not support IPMI v2 / RMCP+\n${NO_SESSION}`, 'bmc_refused', 'refused', /enable it in the firmware/],
    [`Address lookup for nowhere failed\nCould not open socket!\n${NO_SESSION}`, 'bmc_unreachable', 'not-sent', /host name/],
    [`Get Auth Capabilities error\nError issuing Get Channel Authentication Capabilities request\n${NO_SESSION}`, 'bmc_unreachable', 'not-sent', /does not answer/],
    ['Set Chassis Power Control to Down/Off failed: Insufficient privilege level', 'bmc_refused', 'refused', /give it OPERATOR/],
    ['Set Chassis Power Control to Down/Off failed: Command not supported in present state', 'bmc_refused', 'refused', /power state does not allow it/],
    ['Set Chassis Power Control to Down/Off failed: Node busy', 'bmc_refused', 'refused', /busy/],
    ['Set Chassis Power Control to Down/Off failed: Invalid command', 'bmc_refused', 'refused', /Invalid command/],
    ['Set Chassis Power Control to Down/Off failed: Timeout', 'bmc_answer_invalid', 'unknown', /Timeout/],
    ['Set Chassis Power Control to Down/Off failed: Unspecified error', 'bmc_answer_invalid', 'unknown', /Unspecified error/],
    ['Unable to set Chassis Power Control to Down/Off\nClose Session command failed', 'bmc_unreachable', 'unknown', /did not answer the command/],
    ['something nobody has seen before', 'bmc_answer_invalid', 'unknown', /nobody has seen/],
    ['', 'bmc_answer_invalid', 'unknown', /without a word/],
  ])('%j is %s, and a command %s', async (words, code, command, why) => {
    expect(await scripted(said('', words, 1)).bmc.observePower()).toMatchObject({ kind: 'unknown', code, why: expect.stringMatching(why) });
    expect(await scripted(said('', words, 1)).bmc.powerOff()).toMatchObject({ kind: command, why: expect.stringMatching(why), ...(command === 'refused' && { code }) });
  });
  test('a boot device that is refused with exit 0 is refused', async () => {
    const { bmc } = scripted(said('', 'Set Chassis Boot Parameter 4 failed: Insufficient privilege level\nSet Chassis Boot Parameter 5 failed: Insufficient privilege level\n', 0));
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_refused', details: { step: 'chassis bootdev pxe options=efiboot', meaning: expect.stringContaining('OPERATOR') } });
  });
  test('not started by this host: nothing was sent', async () => {
    const { bmc } = scripted({ kind: 'not-started', why: 'ipmitool could not be started: EMFILE' });
    expect(await bmc.powerOff()).toEqual({ kind: 'not-sent', why: 'ipmitool could not be started: EMFILE' });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
  });
  test('cut off by us: it may have been anywhere', async () => {
    const { bmc, calls } = scripted({ kind: 'cut-off', why: 'no end within 12000 ms', stdout: '', stderr: CHATTER });
    expect(await bmc.powerOff()).toEqual({ kind: 'unknown', why: 'no end within 12000 ms' });
    expect(calls).toHaveLength(1);
  });
  test('cut off after the answer: it is an answer', async () => {
    const { bmc } = scripted({ kind: 'cut-off', why: 'x', stdout: 'Chassis Power Control: Down/Off\n', stderr: '' });
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
  });
});

describe('asking again', () => {
  const silence = said('', NO_SESSION, 1);
  test('a BMC that did not answer is asked twice, for reads and for commands that never left', async () => {
    const read = scripted(silence, said('Chassis Power is on\n'));
    expect(await read.bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    const command = scripted(silence, said('Chassis Power Control: Up/On\n'));
    expect(await command.bmc.powerOn()).toEqual({ kind: 'accepted' });
    const never = scripted(silence);
    expect(await never.bmc.powerOn()).toMatchObject({ kind: 'not-sent' });
    expect([read, command, never].map(({ calls }) => calls.length)).toEqual([2, 2, 2]);
  });
  test('a command that may have left is sent once', async () => {
    const { bmc, calls } = scripted(said('', 'Unable to set Chassis Power Control to Up/On', 1));
    expect(await bmc.powerOn()).toMatchObject({ kind: 'unknown' });
    expect(calls).toHaveLength(1);
  });
  test('a password that is wrong is tried once: the account might be locked', async () => {
    const { bmc, calls } = scripted(said('', '> RAKP 2 HMAC is invalid', 1));
    await bmc.observePower();
    expect(calls).toHaveLength(1);
  });
  test('the next cipher suite is taken when the BMC does not know the first, and kept', async () => {
    const { bmc, calls } = scripted(said('', `Error in open session response message : invalid authentication algorithm\n${NO_SESSION}`, 1), said('Chassis Power is on\n'));
    await bmc.observePower();
    await bmc.observePower();
    expect(calls.map(({ args }) => args[args.indexOf('-C') + 1])).toEqual(['17', '3', '3']);
  });
  test('no suite left is refused, with the setting to look at', async () => {
    const { bmc, calls } = scripted(said('', `Error in open session response message : no matching cipher suite with security payloads\n${NO_SESSION}`, 1));
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', why: expect.stringContaining('METALFLOW_IPMI_CIPHER_SUITES') });
    expect(calls).toHaveLength(2);
  });
});

describe('the System GUID', () => {
  const dump = (hex: string): ProgramEnd => said(`System GUID   : ${hex}\n`);
  test.each([
    ['44454C4C390010308048B7C04F4D4B32', { kind: 'read', uuid: UUID, byteOrder: 'smbios' }],
    ['4C4C4544003930108048B7C04F4D4B32', { kind: 'read', uuid: UUID, byteOrder: 'rfc4122' }],
    ['324B4D4FC0B748801030390044454C4C', { kind: 'read', uuid: UUID, byteOrder: 'ipmi' }],
    ['0'.repeat(32), { kind: 'unreadable' }],
    ['F'.repeat(32), { kind: 'unreadable' }],
  ])('%s is %j', async (hex, reading) => {
    expect(await scripted(dump(hex)).bmc.machineUuid()).toMatchObject(reading);
  });
  test('fully reversed, as IPMI itself would have it, is the device too', () => {
    const hex = UUID.replaceAll('-', '').match(/../g)!.reverse().join('');
    expect(readGuid(hex, UUID)).toEqual({ uuid: UUID, order: 'ipmi', by: 'device' });
  });
  test('that fits no order of the device is another machine, whichever order it is shown in', () => {
    const other = '44454C4C390010308048B7C04F4D4B33';
    expect(readGuid(other, UUID)).toMatchObject({ by: 'guess' });
    expect(readGuid(other, UUID)?.uuid).not.toBe(UUID);
  });
  test('without a device to compare with, the version digit decides', () => {
    expect(readGuid('123e4567e89b42d3a456426614174000', undefined)).toMatchObject({ uuid: '123e4567-e89b-42d3-a456-426614174000', order: 'rfc4122', by: 'guess' });
  });
  test('a BMC that has none is unreadable, one that is silent is unknown', async () => {
    expect(await scripted(said('', 'Get GUID command failed: Invalid command', 1)).bmc.machineUuid()).toMatchObject({ kind: 'unreadable' });
    expect(await scripted(said('', NO_SESSION, 1)).bmc.machineUuid()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
  });
});

test('boot options that can be read are a capability, and those that cannot say why', async () => {
  expect(await scripted(said('Boot parameter version: 1\nBoot parameter data: 0004000000\n')).bmc.capabilities()).toEqual({ bootOnceFromNetwork: true });
  expect(await scripted(said('', 'Get Chassis Boot Parameter 5 failed: Invalid command', 1)).bmc.capabilities()).toMatchObject({ bootOnceFromNetwork: false, why: expect.stringContaining('Invalid command') });
  expect(await scripted(said('', NO_SESSION, 1)).bmc.capabilities()).toBeNull();
});

test('the password is in no argument', async () => {
  const { bmc, calls } = scripted(said('Chassis Power is on\n'));
  await bmc.observePower();
  expect(calls.map(({ args, password }) => [args.join(' ').includes('hunter2'), password])).toEqual([[false, 'hunter2']]);
});

test('a worker without ipmitool says which package to install', async () => {
  const { bmc } = scripted({ kind: 'missing' });
  await expect(bmc.observePower()).rejects.toMatchObject({ code: 'bmc_tool_missing', message: expect.stringContaining('ipmitool') });
});
