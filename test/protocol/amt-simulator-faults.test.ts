/** Each switch of the simulator, thrown, and what a client then sees on the wire. The table is complete or it does not compile. */
import { FAULT_NAMES, FAULT_SWITCHES, type AmtFaults, type FaultName } from '../../src/simulator/amt/faults.js';
import { uriOf } from '../../src/simulator/amt/names.js';
import type { AmtSimulatorOptions } from '../../src/simulator/amt/simulator.js';
import { noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';
import { AMT, bootSource, challengeOf, CIM, DISK, ENUMERATION, envelope, fault, GET, halfSent, method, plainPost, post, power, PXE, rawPost, returnValue, role } from '../support/amt-wire.js';
import { outOfTime } from '../support/held-time.js';
import { until } from '../support/until.js';

let bench: AmtBench;
const start = async (faults: Partial<AmtFaults>, options: Partial<AmtSimulatorOptions> = {}): Promise<AmtBench> => (bench = await startAmtBench({ faults, ...options }));
afterEach(async () => {
  await noSocketsLeft();
  await bench.close();
});

const read = envelope(GET, `${CIM}CIM_AssociatedPowerManagementService`);
const readsAs = ({ body }: { body: string }): number => Number(/PowerState>(\d+)</.exec(body)?.[1]);
const propertyOf = async (className: string, name: string): Promise<string | undefined> => new RegExp(`:${name}>([^<]*)<`).exec((await post(bench.amt, envelope(GET, uriOf(className))))[0]!.body)?.[1];
const boots = (): string[] => bench.machine.filter((entry) => entry.startsWith('on '));
const on = { initialPower: 'on' } as const;

const plain = (headers: Record<string, string> = {}, body = read): ReturnType<typeof plainPost> => plainPost(bench.amt, body, headers);
/** Which of some requests were answered. */
async function heard(...requests: string[]): Promise<boolean[]> {
  const answers = [];
  for (const body of requests) answers.push((await plain({}, body)) !== 'lost');
  return answers;
}
/** Status of a read whose digest is over such a uri. */
const withUri = async (uri: string): Promise<number> => Number(/^HTTP\/1\.1 (\d+)/.exec(await rawPost(bench.amt, read, uri))?.[1]);

const SEEN: { readonly [Name in FaultName]: () => Promise<void> } = {
  async qopProfile() {
    for (const qopProfile of ['auth', 'auth-int, auth', 'auth, auth-int'] as const) {
      await bench?.close();
      await start({ qopProfile });
      expect(await challengeOf(bench.amt)).toContain(`qop="${qopProfile}"`);
      expect(await bench.open().observePower()).toMatchObject({ kind: 'read' });
    }
    await bench.amt.setFaults({ qopProfile: 'auth-int' });
    expect(await challengeOf(bench.amt)).toContain('qop="auth-int"');
  },
  async nonceResetEvery() {
    await start({ nonceResetEvery: 2 });
    await post(bench.amt, read, read, read, read);
    expect(bench.amt.counts()).toMatchObject({ refusedLogins: 1 });
  },
  async strictDigestUri() {
    await start({});
    const absolute = `http://${bench.amt.host}:${bench.amt.port}/wsman`;
    expect(await withUri(absolute)).toBe(200);
    await bench.amt.setFaults({ strictDigestUri: true });
    expect([await withUri(absolute), await withUri('/wsman')]).toEqual([401, 200]);
  },
  async lockedOut() {
    await start({ lockedOut: true });
    expect(await bench.open().powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed' });
    expect(bench.amt.power()).toBe('off-soft');
  },
  async unauthorized() {
    await start({});
    expect(await plain()).toMatchObject({ status: 401, headers: { 'content-type': 'text/html', connection: 'close' }, body: expect.stringContaining('<!DOCTYPE HTML') });
    await bench.amt.setFaults({ unauthorized: 'html-keep' });
    expect(await plain({ Connection: 'keep-alive' })).toMatchObject({ status: 401, headers: { connection: 'keep-alive' } });
    await bench.amt.setFaults({ unauthorized: 'empty-close' });
    expect(await plain()).toMatchObject({ status: 401, headers: { connection: 'close' }, body: '' });
  },
  async otherRealm() {
    await start({ otherRealm: 'AB'.repeat(16) });
    expect(await challengeOf(bench.amt)).toContain(`realm="Digest:${'AB'.repeat(16)}"`);
  },

  async lagMs() {
    let at = 0;
    await start({ lagMs: 5000 }, { now: () => new Date(at) });
    expect((await post(bench.amt, power(2))).map(returnValue)).toEqual([0]);
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([8]);
    expect((await post(bench.amt, power(8))).map(returnValue)).toEqual([2]);
    at = 5000;
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([2]);
  },
  async lagReads() {
    await start({ lagReads: 2 });
    await post(bench.amt, power(2));
    expect((await post(bench.amt, read, read, read)).map(readsAs)).toEqual([8, 8, 2]);
  },
  async neverOff() {
    await start({ neverOff: true }, on);
    expect([...(await post(bench.amt, power(8))).map(returnValue), bench.amt.power()]).toEqual([0, 'on']);
  },
  async neverOn() {
    await start({ neverOn: true });
    expect([...(await post(bench.amt, power(2))).map(returnValue), bench.amt.power()]).toEqual([0, 'off-soft']);
  },
  async redirectionOpen() {
    await start({ redirectionOpen: true }, on);
    expect((await post(bench.amt, power(8), power(5), power(10))).map(returnValue)).toEqual([2, 2, 0]);
    await bench.amt.settled();
    expect(bench.machine).toEqual(['off', 'on disk']);
  },
  async osAgent() {
    await start({}, on);
    expect((await post(bench.amt, power(12), power(14))).map(returnValue)).toEqual([2, 2]);
    await bench.amt.setFaults({ osAgent: true });
    expect((await post(bench.amt, power(14), power(4), power(2), power(12))).map(returnValue)).toEqual([0, 0, 0, 0]);
    expect(bench.amt.power()).toBe('off-soft');
    bench.amt.setPower('on');
    expect((await post(bench.amt, power(7))).map(returnValue)).toEqual([0]);
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([7]);
  },
  async readsAs() {
    await start({ readsAs: 6 }, on);
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([6]);
    expect(bench.amt.power()).toBe('on');
  },
  async osSavesPower() {
    await start({}, on);
    expect(await propertyOf('IPS_PowerManagementService', 'OSPowerSavingState')).toBe('2');
    await bench.amt.setFaults({ osSavesPower: true });
    expect(await propertyOf('IPS_PowerManagementService', 'OSPowerSavingState')).toBe('3');
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([2]);
  },
  async osPowerSavingAbsent() {
    await start({ osPowerSavingAbsent: true }, on);
    expect(await propertyOf('IPS_PowerManagementService', 'OSPowerSavingState')).toBeUndefined();
    await bench.amt.setFaults({ osPowerSavingAbsent: false });
    bench.amt.setPower('off-soft');
    expect(await propertyOf('IPS_PowerManagementService', 'OSPowerSavingState')).toBeUndefined();
  },
  async onlyPowerState() {
    await start({ onlyPowerState: true });
    const [answer] = await post(bench.amt, read);
    expect(answer!.body).toMatch(/<h:CIM_AssociatedPowerManagementService [^>]*><h:PowerState>8<\/h:PowerState><\/h:CIM_/);
    expect(await bench.open().observePower()).toEqual({ kind: 'read', power: 'off-soft' });
  },
  async powerLost() {
    await start({}, on);
    await bench.amt.setFaults({ powerLost: true });
    expect(await heard(read)).toEqual([false]);
    expect(() => bench.amt.setPower('on')).toThrow('no mains');
    await bench.amt.setFaults({ powerLost: false });
    expect((await post(bench.amt, read)).map(readsAs)).toEqual([6]);
    expect(bench.machine).toEqual(['off']);
  },

  async sourceRule() {
    await start({ sourceRule: 'last-wins' });
    await post(bench.amt, bootSource(DISK), bootSource(PXE));
    expect(bench.amt.armed().source).toBe(PXE);
    await bench.amt.setFaults({ sourceRule: 'first-wins' });
    await post(bench.amt, bootSource(DISK));
    expect(bench.amt.armed().source).toBe(PXE);
  },
  async ignoresBootOrder() {
    await start({ ignoresBootOrder: true });
    expect((await post(bench.amt, bootSource(PXE), role(1), power(2))).map(returnValue)).toEqual([0, 0, 0]);
    await bench.amt.settled();
    expect(boots()).toEqual(['on disk']);
  },
  async lowerCaseSource() {
    const lower = bootSource(PXE).replaceAll('n1:Source>', 'n1:source>');
    await start({ lowerCaseSource: true });
    expect((await post(bench.amt, bootSource(PXE))).map(fault)).toEqual(['SchemaValidationError']);
    expect((await post(bench.amt, lower)).map(returnValue)).toEqual([0]);
    expect(bench.amt.armed().source).toBe(PXE);
    await bench.amt.setFaults({ lowerCaseSource: false });
    expect((await post(bench.amt, lower)).map(fault)).toEqual(['SchemaValidationError']);
  },
  async fewerBootSettings() {
    await start({ fewerBootSettings: true });
    const [settings] = await post(bench.amt, envelope(GET, `${AMT}AMT_BootSettingData`));
    expect(settings!.body).toContain('BIOSSetup>');
    expect(settings!.body).not.toMatch(/SecureErase|UefiBoot|BIOSLastStatus/);
    const put = (field: string): string => envelope('http://schemas.xmlsoap.org/ws/2004/09/transfer/Put', `${AMT}AMT_BootSettingData`, `<n1:AMT_BootSettingData><n1:${field}>false</n1:${field}></n1:AMT_BootSettingData>`);
    expect((await post(bench.amt, put('SecureErase'), put('UseSOL'))).map(({ status }) => status)).toEqual([400, 200]);
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
  },
  async ccmAccessDenied() {
    await start({ ccmAccessDenied: true });
    expect((await post(bench.amt, bootSource(PXE))).map(fault)).toEqual(['AccessDenied']);
    expect((await post(bench.amt, method('CIM_BootConfigSetting', 'ChangeBootOrder', ''))).map(returnValue)).toEqual([0]);
  },
  async noPxe() {
    await start({ noPxe: true });
    expect((await post(bench.amt, envelope(GET, `${AMT}AMT_BootCapabilities`)))[0]!.body).toContain('ForcePXEBoot>false<');
  },

  async refuse() {
    await start({ refuse: { SetBootConfigRole: 5 } });
    expect((await post(bench.amt, bootSource(PXE), role(1))).map(returnValue)).toEqual([0, 5]);
    expect(bench.amt.armed().role).toBe(32_768);
  },
  async absentClasses() {
    await start({ absentClasses: ['CIM_BootService'] });
    expect((await post(bench.amt, envelope(GET, `${CIM}CIM_BootService`), role(1))).map(fault)).toEqual(['DestinationUnreachable', 'DestinationUnreachable']);
    const [opened] = await post(bench.amt, envelope(`${ENUMERATION}/Enumerate`, `${CIM}CIM_BootService`, '<wsen:Enumerate/>'));
    const context = /EnumerationContext>([^<]+)</.exec(opened!.body)![1]!;
    expect((await post(bench.amt, envelope(`${ENUMERATION}/Pull`, `${CIM}CIM_BootService`, `<wsen:Pull><wsen:EnumerationContext>${context}</wsen:EnumerationContext></wsen:Pull>`)))[0]!.body).toContain('<g:Items></g:Items><g:EndOfSequence/>');
  },

  async sleepFirstN() {
    await start({ sleepFirstN: 2 });
    expect(await heard(read, read, read)).toEqual([false, false, true]);
  },
  async sleepAfterIdleMs() {
    let at = 0;
    await start({ sleepAfterIdleMs: 60_000 }, { now: () => new Date(at) });
    at = 59_999;
    expect(await heard(read)).toEqual([true]);
    at += 60_000;
    expect(await heard(read, read)).toEqual([false, true]);
    bench.amt.setPower('on');
    at += 60_000;
    expect(await heard(read)).toEqual([true]);
  },
  async wakeConnections() {
    let at = 0;
    await start({ sleepAfterIdleMs: 1, wakeConnections: 3 }, { now: () => new Date(at) });
    at = 1;
    expect(await heard(read, read, read, read)).toEqual([false, false, false, true]);
  },
  async settlingMs() {
    let at = 0;
    await start({ settlingMs: 20_000 }, { now: () => new Date(at) });
    expect((await post(bench.amt, read, power(2))).map(({ status }) => status)).toEqual([200, 200]);
    at = 19_999;
    expect(await heard(read, read)).toEqual([false, false]);
    at = 20_000;
    expect(await heard(read)).toEqual([true]);
  },
  async unreachable() {
    await start({});
    await bench.amt.setFaults({ unreachable: true });
    expect(await heard(read)).toEqual([false]);
    // Both at once, in any order of their work: the last word counts.
    await Promise.all([bench.amt.setFaults({ unreachable: true }), bench.amt.setFaults({ unreachable: false })]);
    expect(await heard(read)).toEqual([true]);
  },
  async oneAtATime() {
    await start({ oneAtATime: true });
    const first = halfSent(bench.amt);
    await until('the first is heard', () => bench.amt.counts().requests > 0);
    expect(await heard(read)).toEqual([false]);
    expect(await first.finish()).toBe(401);
    await until('the next is heard', async () => (await heard(read))[0]);
  },
  async dropBefore() {
    await start({ dropBefore: 1 });
    expect([(await bench.open().powerOn()).kind, bench.amt.power()]).toEqual(['unknown', 'off-soft']);
  },
  async acceptThenDrop() {
    await start({ acceptThenDrop: 1 });
    expect([(await bench.open().powerOn()).kind, bench.amt.power()]).toEqual(['unknown', 'on']);
  },
  async dropAnswersOf() {
    await start({ dropAnswersOf: 'SetBootConfigRole' });
    await expect(post(bench.amt, role(1))).rejects.toThrow();
    expect(bench.amt.armed().role).toBe(1);
  },
  async silent() {
    await start({ silent: true });
    expect(await outOfTime(150, () => bench.open({ timeouts: { requestMs: 150 } }).powerOn(), () => bench.amt.power() === 'on')).toMatchObject({ kind: 'unknown' });
  },
  async answerDelayMs() {
    await start({ answerDelayMs: 600_000 });
    expect(await outOfTime(150, () => bench.open({ timeouts: { requestMs: 150, tries: 1 } }).observePower(), () => bench.amt.counts().calls.length > 0)).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
    await bench.amt.setFaults({ answerDelayMs: 1 });
    expect(await bench.open().observePower()).toMatchObject({ kind: 'read' });
  },

  async framing() {
    await start({});
    expect(await rawPost(bench.amt, read)).toMatch(/Transfer-Encoding: chunked\r\n[^]*a:Envelope/);
    await bench.amt.setFaults({ framing: 'length' });
    expect(await rawPost(bench.amt, read)).toMatch(/Content-Length: \d+\r\n[^]*a:Envelope/);
  },
  async answerAs() {
    await start({ answerAs: 'torn' });
    await expect(post(bench.amt, read)).rejects.toThrow();
    for (const [answerAs, timeouts] of [['truncated-xml', {}], ['html', {}], ['huge', {}], ['slow-drip', { requestMs: 300, tries: 1 }]] as const) {
      await bench.amt.setFaults({ answerAs });
      expect((await bench.open({ timeouts }).observePower()).kind).toBe('unknown');
    }
  },
  async prefixes() {
    await start({ prefixes: 'words' });
    const bmc = bench.open();
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    expect(await bmc.identify()).toMatchObject({ version: '16.1.25' });
    const [answer, refused] = await post(bench.amt, read, envelope(GET, `${CIM}CIM_Toaster`));
    expect(answer!.body).toMatch(/<env:Envelope xmlns:env="[^"]+" xmlns:wsa=[^]*<wsa:Action env:mustUnderstand="true">[^]*<\/n2:PowerState>/);
    expect(refused!.body).toMatch(/<env:Value>env:Sender<\/env:Value><env:Subcode><env:Value xmlns:err="[^"]+">err:DestinationUnreachable</);
    expect(`${answer!.body}${refused!.body}`).not.toMatch(/<\/?[a-h]:|xmlns:[a-h]=|[\s>][a-h]:/);
  },
  async actionWithoutResponse() {
    await start({ actionWithoutResponse: true });
    expect((await post(bench.amt, role(1)))[0]!.body).toContain(`<b:Action a:mustUnderstand="true">${CIM}CIM_BootService/SetBootConfigRole<`);
    expect(await bench.open().bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
  },
  async version() {
    await start({ version: '9.5.60' });
    expect(await bench.open().identify()).toMatchObject({ version: '9.5.60' });
    expect(await plain()).toMatchObject({ headers: { server: 'Intel(R) Active Management Technology 9.5.60.1917' } });
  },

  async hostsStaticAddress() {
    await start({ hostsStaticAddress: true });
    expect(await propertyOf('AMT_EthernetPortSettings', 'SharedStaticIp')).toBe('true');
  },
  async sleepsWithHost() {
    await start({ sleepsWithHost: true });
    const [answer] = await post(bench.amt, envelope(GET, uriOf('AMT_EthernetPortSettings')));
    expect([...answer!.body.matchAll(/LinkPolicy>(\d+)</g)].map(([, state]) => state)).toEqual(['1', '16']);
  },
  async onBattery() {
    await start({ onBattery: true });
    expect(await propertyOf('AMT_GeneralSettings', 'PowerSource')).toBe('1');
  },
  async clockSkewSeconds() {
    await start({ clockSkewSeconds: -90 }, { now: () => new Date(1_000_000_000_000) });
    const uri = uriOf('AMT_TimeSynchronizationService');
    const [answer] = await post(bench.amt, envelope(`${uri}/GetLowAccuracyTimeSynch`, uri, '<n1:GetLowAccuracyTimeSynch_INPUT/>'));
    expect(answer!.body).toContain('Ta0>999999910<');
  },

  async otherUuid() {
    await start({ otherUuid: '11111111-2222-3333-4444-555555555555' });
    expect(await bench.open().machineUuid()).toEqual({ kind: 'read', uuid: '11111111-2222-3333-4444-555555555555' });
  },
};

describe('a switch changes what it says', () => {
  test.each(FAULT_NAMES.map((name) => [name, FAULT_SWITCHES[name].of] as const))('%s: %s', (name) => SEEN[name]());
});
