/** `metalflow bmc …` against a simulated AMT, a NetBox and a store. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli, type ExitCode, type Roles } from '../../src/cli/index.js';
import { readConfig } from '../../src/config/config.js';
import { bmcByHand } from '../../src/main/bmc.js';
import { doctor } from '../../src/main/doctor.js';
import { startAmtSimulator, type AmtSimulator } from '../../src/simulator/amt/simulator.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { createStore, openDatabase, type Store } from '../../src/store/index.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { deviceOf } from '../support/store-bench.js';
import { until } from '../support/until.js';

const UUID = '4c4c4544-0039-3010-8048-b7c04f4d4b32';
const PASSWORD = 'P@ssw0rd1';
let dir: string;
let amt: AmtSimulator;
let netbox: NetboxStandIn;
let store: Store;
let env: Record<string, string>;
let deviceId: string;
let nodes = 0;

/** Seconds until a power change has to show. */
const allow = (poweringOff: number): void => writeFileSync(join(dir, 'limits.json'), JSON.stringify({ poweringOff, settling: 1, powerPoll: 0.05, bmcLock: 60 }));

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'metalflow-bmc-'));
  mkdirSync(join(dir, 'secrets'));
  const token = `nbt_test00000001.${randomBytes(20).toString('hex')}`;
  netbox = await startNetboxStandIn({ token, log: silentLogger() });
  env = { METALFLOW_DATA_DIR: dir, METALFLOW_NETBOX_URL: netbox.url, METALFLOW_NETBOX_TOKEN: token, METALFLOW_LIMITS_FILE: join(dir, 'limits.json') };
  store = createStore({ db: await openDatabase(`sqlite:${join(dir, 'metalflow.db')}`), temporal: { look: async () => ({ kind: 'absent' }) } });
  await store.installation.begin('installation-a');
  await store.installation.confirm();
});
beforeEach(async () => {
  nodes += 1;
  allow(100);
  writeFileSync(join(dir, 'secrets', 'bmc-amt.json'), JSON.stringify({ username: 'admin', password: PASSWORD }));
  amt = await startAmtSimulator({ username: 'admin', password: PASSWORD, machineUuid: UUID, initialPower: 'on', power: { powerOn: () => undefined, powerOff: () => undefined }, log: silentLogger() });
  deviceId = netbox.addDevice({
    name: name(), status: 'active', site: 'lab', oobIp: '127.0.0.1/8', bmcPort: amt.port,
    customFields: { bmc_type: 'amt', node_class: 'talos', system_uuid: UUID }, interfaces: [{ name: 'eth0', mac: `02:00:00:00:00:${nodes.toString(16).padStart(2, '0')}`, addresses: ['192.0.2.7/24'] }],
  });
  await store.devices.register(deviceOf({ id: deviceId, name: name(), macs: [], addresses: [], bmc: { type: 'amt', host: '127.0.0.1', port: amt.port } }), { state: 'active', adopted: true });
});
afterEach(() => amt.close());
afterAll(async () => {
  await store.close();
  await netbox.close();
  rmSync(dir, { recursive: true, force: true });
});

interface Said { readonly code: ExitCode; readonly out: string; readonly err: string }
/** @param said what the person reads, as it comes */
async function bmcSaying(said: { out: string; err: string }, ...words: string[]): Promise<Said> {
  const code = await runCli(['bmc', ...words], {
    version: '1', terminal: { out: (text) => void (said.out += text), err: (text) => void (said.err += text), isTerminal: false },
    roles: async () => ({ bmc: bmcByHand }) as unknown as Roles, readConfig: (role) => readConfig(env, role),
  });
  return { code, ...said };
}
const bmc = (...words: string[]): Promise<Said> => bmcSaying({ out: '', err: '' }, ...words);
const name = (): string => `node-${nodes}`;
const address = (): string[] => ['127.0.0.1', '--type', 'amt', '--port', String(amt.port)];
const sent = (): Record<string, number> => ({ ...amt.counts().byValue });

describe('status', () => {
  test('of a device reads power, machine and product; of an address too', async () => {
    const { code, out } = await bmc('status', name(), '--json');
    expect([code, JSON.parse(out)]).toEqual([0, {
      what: 'status', device: { id: deviceId, name: name(), openRun: null }, bmc: { type: 'amt', address: `127.0.0.1:${amt.port}` },
      power: 'on', why: null, machine: { kind: 'same', uuid: UUID }, identity: { product: expect.stringContaining('AMT'), version: expect.stringMatching(/^\d/) },
    }]);
    expect((await bmc('status', ...address())).out).toMatch(/^bmc\tamt 127\.0\.0\.1:\d+\npower\ton\nmachine\t4c4c4544/);
  });

  test('of a BMC that nobody answers for is unknown, never off, and ends with 1', async () => {
    await amt.setFaults({ unreachable: true });
    const { code, out } = await bmc('status', name(), '--json');
    expect([code, JSON.parse(out)]).toMatchObject([1, { power: 'unknown', why: expect.any(String), identity: null }]);
  });
});

describe('on and off', () => {
  test('what is there already needs no command', async () => {
    expect(await bmc('on', name())).toEqual({ code: 0, out: `${name()} reads on: nothing to do\n`, err: '' });
    expect(sent()).toEqual({});
  });

  test('one command is sent, and the end is seen; who asked is written before the wire, and what was seen after', async () => {
    await amt.setFaults({ lagReads: 2 });
    const { code, out, err } = await bmc('off', name(), '--as', 'ada', '--reason', 'fan');
    expect([code, out, sent()]).toEqual([0, `${name()} reads off\n`, { 8: 1 }]);
    expect(err).toContain('asked off; reads on');
    const journal = (await store.nodes.journal(deviceId, 5)).map(({ kind, by, text: line }) => [kind, by, line]);
    expect(journal.slice(0, 2)).toEqual([['power', 'ada', "power off seen by ada's hand (metalflow bmc off): fan"], ['power', 'ada', "power off asked by ada's hand (metalflow bmc off): fan"]]);
    expect(netbox.journal(deviceId).map(({ comments }) => comments)).toContainEqual(expect.stringContaining("power off seen by ada's hand"));
    // So that the silence of an AMT after it is settling to whoever looks next.
    expect(await store.power.lastChangeAt(deviceId)).not.toBeNull();
    expect((await store.nodes.find(deviceId))!.power).toBe('off');
  });

  test('a lost answer is followed by looks, not by a second command', async () => {
    await amt.setFaults({ acceptThenDrop: 1, lagReads: 1 });
    expect((await bmc('off', name())).out).toBe(`${name()} reads off\n`);
    expect(sent()).toEqual({ 8: 1 });
  });

  test('a BMC that says yes and stays on ends with its code, and the journal has the attempt', async () => {
    allow(1);
    await amt.setFaults({ neverOff: true });
    const { code, err } = await bmc('off', name());
    expect([code, err]).toEqual([1, expect.stringMatching(/bmc_still_on: /)]);
    expect((await store.nodes.journal(deviceId, 5))[0]!.text).toMatch(/^power off ended with bmc_still_on/);
  });
});

test('pxe arms one boot and powers nothing; with --reboot it goes off and on', async () => {
  expect((await bmc('pxe', name())).out).toMatch(/armed for the next power-on; it reads on/);
  expect([amt.armed().boot, sent()]).toEqual(['network', {}]);
  expect((await bmc('pxe', name(), '--reboot', '--json')).out).toMatch(/"armed": true/);
  expect(sent()).toEqual({ 8: 1, 2: 1 });
});

test('a bare address, of no device, is powered too: one command, and its end is seen', async () => {
  const bare = await startAmtSimulator({ host: '127.0.0.9', username: 'admin', password: PASSWORD, machineUuid: UUID, initialPower: 'on', power: { powerOn: () => undefined, powerOff: () => undefined }, log: silentLogger() });
  try {
    await bare.setFaults({ lagReads: 2 });
    expect(await bmc('off', '127.0.0.9', '--type', 'amt', '--port', String(bare.port))).toMatchObject({ code: 0, out: `127.0.0.9:${bare.port} reads off\n` });
    expect(bare.counts().byValue).toEqual({ 8: 1 });
  } finally {
    await bare.close();
  }
});

// A command from the wrong folder would find no open run, no lease and no device, and believe it.
describe('where no installation keeps its store (A9)', () => {
  const places = {
    'there is no file': async () => undefined,
    'the file is of somebody else': async () => { mkdirSync(elsewhere); writeFileSync(join(elsewhere, 'metalflow.db'), ''); },
    'no worker has confirmed the installation': async () => {
      const begun = createStore({ db: await openDatabase(`sqlite:${join(elsewhere, 'metalflow.db')}`), temporal: { look: async () => ({ kind: 'absent' }) } });
      await begun.installation.begin('installation-b');
      await begun.close();
    },
  };
  let elsewhere: string;
  let home: Record<string, string>;
  beforeEach(() => {
    elsewhere = join(dir, 'elsewhere');
    home = env;
    env = { ...env, METALFLOW_DATA_DIR: elsewhere, METALFLOW_SECRETS_DIR: join(dir, 'secrets') };
  });
  afterEach(() => {
    env = home;
    rmSync(elsewhere, { recursive: true, force: true });
  });

  test.each(Object.entries(places))('%s: on, off and pxe send nothing, and say where they looked and what names the right place', async (_, arrange) => {
    await arrange();
    for (const target of [address(), [deviceId], [name()]]) {
      for (const what of ['on', 'off', 'pxe']) {
        const said = await bmc(what, ...target, '--json');
        const { error } = JSON.parse(said.out) as { error: { code: string; message: string; hint: string } };
        expect([said.code, error.code, error.message]).toEqual([1, 'store_not_found', expect.stringContaining(join(elsewhere, 'metalflow.db'))]);
        expect(error.hint).toMatch(/METALFLOW_DATABASE_URL.*METALFLOW_DATA_DIR/);
      }
    }
    expect(sent()).toEqual({});
  });

  test('a look goes on, says so, and makes no store either', async () => {
    for (const target of [address(), [deviceId]]) {
      const said = await bmc('status', ...target);
      expect([said.code, said.out, said.err]).toEqual([0, expect.stringContaining('power\ton\n'), expect.stringContaining(`no metalflow keeps its store in ${join(elsewhere, 'metalflow.db')}`)]);
      expect((await bmc('doctor', ...target)).err).toContain('only the BMC is asked');
    }
    const { store: checked } = Object.fromEntries((await doctor(readConfig(env, 'cli'))).map(({ name: check, ...rest }) => [check, rest]));
    expect(checked).toMatchObject({ result: 'warning', found: expect.stringContaining(elsewhere) });
    expect(existsSync(elsewhere)).toBe(false);
  });
});

describe('what is refused sends nothing', () => {
  test("the address of a device's BMC, by number or by name: a device has runs, a machine and a journal", async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const said = await bmc('off', host, '--type', 'amt', '--port', String(amt.port), '--json');
      expect([said.code, JSON.parse(said.out).error.code, sent()]).toEqual([1, 'bmc_is_a_devices', {}]);
    }
  });

  test('C3: of several BMCs behind one host it is the one at that port whose device is named, and a port of no device is powered', async () => {
    const neighbour = await startAmtSimulator({ username: 'admin', password: PASSWORD, machineUuid: UUID, initialPower: 'on', power: { powerOn: () => undefined, powerOff: () => undefined }, log: silentLogger() });
    try {
      const off = (port: number): Promise<Said> => bmc('off', '127.0.0.1', '--type', 'amt', '--port', String(port), '--json');
      expect(JSON.parse((await off(amt.port)).out).error.message).toBe(`127.0.0.1:${amt.port} is the BMC of ${name()}`);
      expect(await off(neighbour.port)).toMatchObject({ code: 0 });
      await store.devices.register(deviceOf({ id: '9001', name: 'a-neighbour', macs: [], addresses: [], bmc: { type: 'amt', host: '127.0.0.1', port: neighbour.port } }), { state: 'active', adopted: true });
      expect(JSON.parse((await off(neighbour.port)).out).error.message).toBe(`127.0.0.1:${neighbour.port} is the BMC of a-neighbour`);
    } finally {
      await neighbour.close();
    }
  });

  test.each([[undefined, 16_993], [16_992, undefined], [16_992, 16_993]])('C3: a BMC is the same at each of its own ports (declared %s, asked for %s)', async (declared, asked) => {
    const host = `127.0.1.${nodes}`;
    await store.devices.register(deviceOf({ id: deviceId, name: name(), macs: [], addresses: [], bmc: { type: 'amt', host, ...(declared && { port: declared }) } }), { state: 'active', adopted: true });
    const said = await bmc('off', host, '--type', 'amt', ...(asked ? ['--port', String(asked)] : []), '--json');
    expect(JSON.parse(said.out).error).toMatchObject({ code: 'bmc_is_a_devices', message: expect.stringContaining(name()) });
  });

  test('A7: a name that two machines have, which says so with their ids', async () => {
    for (const [id, site] of [['9100', 'ams1'], ['9101', 'fra1']] as const) await store.devices.register(deviceOf({ id, name: 'rack4-node7', site, macs: [], addresses: [], bmc: null }), { state: 'active', adopted: true });
    expect(JSON.parse((await bmc('off', 'rack4-node7', '--json')).out).error).toMatchObject({ code: 'node_ambiguous', message: expect.stringContaining('9100 (site ams1, active), 9101 (site fra1, active)') });
  });

  test('a run that is opened while the person waits for the BMC', async () => {
    const key = `127.0.0.1:${amt.port}`;
    expect(await store.power.lock(key, 'a worker', 60)).toBe(true);
    const screen = { out: '', err: '' };
    const waiting = bmcSaying(screen, 'off', name());
    await until('the person waits', () => screen.err.includes('waiting for another conversation'));
    await store.runs.open(deviceId, 'wipe', { asked: { how: 'netbox' }, intake: null });
    await store.power.unlock(key, 'a worker');
    const said = await waiting;
    expect([said.code, said.err, sent()]).toEqual([1, expect.stringContaining('bmc_run_open: '), {}]);
  });


  test.each([
    ['another machine behind the address', async () => { await amt.setFaults({ otherUuid: '4c4c4544-9999-4000-8000-000000000001' }); }, ['off'], 'bmc_is_another_machine'],
    ['an open run', async () => { await store.runs.open(deviceId, 'wipe', { asked: { how: 'netbox' }, intake: null }); }, ['off'], 'bmc_run_open'],
    ['an open run, insisted on without a reason', async () => { await store.runs.open(deviceId, 'wipe', { asked: { how: 'netbox' }, intake: null }); }, ['off', '--during-run'], 'reason_required'],
    ['a wrong password', async () => { writeFileSync(join(dir, 'secrets', 'bmc-amt.json'), JSON.stringify({ username: 'admin', password: 'wrong' })); }, ['off'], 'bmc_auth_failed'],
    ['no secret', async () => { rmSync(join(dir, 'secrets', 'bmc-amt.json')); }, ['off'], 'bmc_auth_failed'],
    ['a dead host', async () => { await amt.setFaults({ unreachable: true }); }, ['off'], 'bmc_unreachable'],
    ['client control mode', async () => { await amt.setFaults({ ccmAccessDenied: true }); }, ['pxe'], 'bmc_refused'],
  ])('%s', async (_what, arrange, [what, ...flags], code) => {
    await arrange();
    const said = await bmc(what!, name(), ...flags, '--json');
    expect([said.code, JSON.parse(said.out).error.code, sent()]).toEqual([1, code, {}]);
  });

  test('during a run, with a reason, a person may', async () => {
    await store.runs.open(deviceId, 'wipe', { asked: { how: 'netbox' }, intake: null });
    expect((await bmc('off', name(), '--during-run', '--reason', 'smoke')).code).toBe(0);
    expect(sent()).toEqual({ 8: 1 });
  });

  test('a web page is no BMC', async () => {
    // Of no device: 127.0.0.9 is this machine too.
    const web = createServer((_, response) => response.end('<!DOCTYPE html><p>hello'));
    await new Promise<void>((resolve) => void web.listen(0, '127.0.0.9', resolve));
    try {
      const said = await bmc('off', '127.0.0.9', '--type', 'amt', '--port', String((web.address() as AddressInfo).port), '--json');
      expect([said.code, JSON.parse(said.out).error.code]).toEqual([1, 'bmc_answer_invalid']);
    } finally {
      web.closeAllConnections();
      await new Promise((resolve) => web.close(resolve));
    }
  });

  test('an unknown node, and a node without BMC', async () => {
    expect(JSON.parse((await bmc('off', 'nobody', '--json')).out).error.code).toBe('node_not_found');
    const bare = netbox.addDevice({ name: 'bare', status: 'active', site: 'lab', oobIp: '127.0.0.1/8', bmcPort: 1, customFields: { node_class: 'talos' }, interfaces: [] });
    expect(JSON.parse((await bmc('status', bare, '--json')).out).error.code).toBe('device_invalid');
  });

  test.each([['off'], ['reboot', 'x'], ['off', 'x', '--type', 'manual'], ['off', 'x', '--port', '70000'], ['off', 'x', '--fingerprint', 'ab'], ['status', 'x', '--reason', 'y']])('wrong use: %s %s %s', async (...words) => {
    expect((await bmc(...words)).code).toBe(2);
  });
});

describe('doctor', () => {
  const checks = async (): Promise<[ExitCode, Record<string, { result: string; found: string; hint?: string }>]> => {
    const { code, out } = await bmc('doctor', name(), '--json');
    return [code, Object.fromEntries((JSON.parse(out).checks as { name: string; result: string; found: string }[]).map(({ name: check, ...rest }) => [check, rest]))];
  };

  test('a good BMC has nothing bad', async () => {
    const [code, found] = await checks();
    expect(Object.entries(found).filter(([, { result }]) => result === 'bad')).toEqual([]);
    expect([code, found['machine UUID'], found['one-time network boot']]).toMatchObject([0, { result: 'good' }, { result: 'good' }]);
    expect(Object.keys(found)).toEqual(expect.arrayContaining(['power', 'product', 'control mode', 'network boot', 'address', 'power policy', 'clock']));
  });

  test.each([
    ['client control mode', 'control mode', { ccmAccessDenied: true }],
    ['no network boot in the firmware', 'network boot', { noPxe: true }],
    ['another machine', 'machine UUID', { otherUuid: '4c4c4544-9999-4000-8000-000000000001' }],
    ['nobody there', 'power', { unreachable: true }],
  ])('%s is bad, with what to do', async (_what, check, faults) => {
    await amt.setFaults(faults);
    const [code, found] = await checks();
    expect([code, found[check]]).toMatchObject([1, { result: 'bad', hint: expect.any(String) }]);
    expect(sent()).toEqual({});
  });
});
