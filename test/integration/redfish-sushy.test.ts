/**
 * Our Redfish driver against sushy-tools' emulator, which its authors made for OpenStack Ironic. What it cannot show: its fake driver
 * boots nothing, reads every override back as Continuous and never takes it back, so that a boot is good for one time only stays a
 * claim of the request; UefiHttp without an HttpBootUri it turns into Pxe; it has no sessions and no tags (those are proven by script in
 * test/protocol/redfish-client.test.ts).
 */
import { createPowerActivities } from '../../src/activities/power.js';
import { createRedfishBmc } from '../../src/bmc/redfish/client.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { powerBench } from '../support/power-bench.js';
import { installSushy, startSushy, type SushyEmulator } from '../support/sushy.js';

const CREDENTIALS = { username: 'admin', password: 'P@ssw0rd1!' };
const [FIRST, SECOND] = ['4c4c4544-0042-3510-8052-b4c04f564433', '5d5d4544-0042-3510-8052-b4c04f564433'] as const;

let emulator: SushyEmulator;
beforeAll(async () => {
  await installSushy();
  emulator = await startSushy({ systems: [{ uuid: FIRST, name: 'node1' }, { uuid: SECOND, name: 'node2' }], credentials: CREDENTIALS });
});
afterAll(() => emulator?.close());

const opened: Bmc[] = [];
afterEach(() => Promise.all(opened.splice(0).map((bmc) => bmc.close())));
function open(address: Partial<BmcAddress> = { systemUuid: FIRST }, password = CREDENTIALS.password): Bmc {
  const bmc = createRedfishBmc({ address: { type: 'redfish', host: '127.0.0.1', port: emulator.port, tls: false, ...address }, credentials: { ...CREDENTIALS, password }, secret: 'bmc-redfish', log: silentLogger() });
  opened.push(bmc);
  return bmc;
}

/** The system as any client reads it. */
async function system(uuid: string): Promise<{ PowerState: string; Boot: Record<string, unknown> }> {
  const answer = await fetch(`http://127.0.0.1:${emulator.port}/redfish/v1/Systems/${uuid}`, { headers: { authorization: `Basic ${btoa(`${CREDENTIALS.username}:${CREDENTIALS.password}`)}` } });
  return (await answer.json()) as { PowerState: string; Boot: Record<string, unknown> };
}

test('says which machine it is, who made it, and that it can boot from the network', async () => {
  expect(await open().machineUuid()).toEqual({ kind: 'read', uuid: FIRST });
  expect(await open({ system: 'node2' }).machineUuid()).toEqual({ kind: 'read', uuid: SECOND });
  expect(await open().identify()).toEqual({ product: 'Sushy Emulator', version: expect.stringContaining('Redfish 1.') });
  expect(await open().capabilities()).toEqual({ bootOnceFromNetwork: true });
});

test('of two systems none of which is named, NetBox has to say which', async () => {
  await expect(open({}).observePower()).rejects.toMatchObject({ code: 'device_invalid', details: { what: expect.stringContaining(SECOND) } });
});

test('the wrong password does nothing', async () => {
  expect(await open({ systemUuid: FIRST }, 'wrong').powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_auth_failed' });
  expect(await open({ systemUuid: FIRST }, 'wrong').observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_auth_failed' });
});

test('one boot from the network is set on the machine alone', async () => {
  expect(await open({ systemUuid: SECOND }).bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
  expect((await system(SECOND)).Boot).toMatchObject({ BootSourceOverrideTarget: 'Pxe', BootSourceOverrideMode: 'UEFI' });
  expect((await system(FIRST)).Boot).toMatchObject({ BootSourceOverrideTarget: 'Hdd' });
});

test('the activities of a run work unchanged through its lag: off and on are reached, off is read twice', async () => {
  const address: BmcAddress = { type: 'redfish', host: '127.0.0.1', port: emulator.port, tls: false, systemUuid: FIRST };
  const bench = powerBench(address, FIRST, async () => open(address));
  await bench.throughALife(createPowerActivities(bench.deps));
  expect(await system(FIRST)).toMatchObject({ PowerState: 'Off', Boot: { BootSourceOverrideTarget: 'Pxe' } });
});
