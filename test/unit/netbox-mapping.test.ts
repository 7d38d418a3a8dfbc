import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toDevice, toWiring } from '../../src/netbox/mapping.js';
import { RestAddress, RestDevice, RestInterface, RestPage } from '../../src/netbox/shapes.js';

const capture = (name: string): { body: Record<string, unknown> } => JSON.parse(readFileSync(join(__dirname, '../fixtures/netbox', `${name}.json`), 'utf8'));
const captured = capture('rest-device-with-config-context').body;
const interfaces = RestPage.parse(capture('rest-device-interfaces').body).results.map((one) => RestInterface.parse(one));
const addresses = RestPage.parse(capture('rest-device-ip-addresses').body).results.map((one) => RestAddress.parse(one));

const NO_WIRING = { macs: [], addresses: [] };
/** SHA-256 of a certificate. */
const PIN = 'ab01'.repeat(16);
const UUID = '4c4c4544-0051-3010-8052-b4c04f4e3532';

/** The captured device with some custom fields, and other members, replaced. */
const withFields = (fields: Record<string, unknown>, members: Record<string, unknown> = {}): RestDevice =>
  RestDevice.parse({ ...captured, ...members, custom_fields: { ...(captured.custom_fields as object), ...fields } });
const mapped = (fields: Record<string, unknown>, members: Record<string, unknown> = {}) => toDevice(withFields(fields, members), NO_WIRING, null);

describe('a device of NetBox 4.7.3', () => {
  test('is read as captured, without what belongs to its BMC', () => {
    const rest = RestDevice.parse(captured);
    expect(toDevice(rest, toWiring(rest, interfaces, addresses), 'W/"x"')).toEqual({
      id: '1', name: 'node-39380-1', status: 'decommissioning', site: 'lab-39380', nodeClass: 'compute', desiredAction: null, unknownAction: null,
      systemUuid: null, rootDisk: null, wipeDisks: [], tpmEk: null, bmc: { type: 'redfish', host: '198.51.100.10' },
      macs: ['02:00:00:00:00:01'], addresses: ['192.0.2.10'],
      metadata: { tags: expect.any(Array) as string[], interfaces: [{ name: 'eno1', mac: '02:00:00:00:00:01', addresses: ['192.0.2.10/24'] }], primary: expect.any(Array) as string[], sshKeys: [], userData: null, network: null }, lastUpdated: '2026-11-30T11:50:07.722924Z', etag: 'W/"x"',
    });
  });

  test('keeps the MAC of an interface that host and AMT share, and only drops the oob address', () => {
    const rest = RestDevice.parse(captured);
    const shared = interfaces.map((one) => ({ ...one, mgmt_only: false }));
    expect(toWiring(rest, shared, addresses)).toMatchObject({ macs: ['02:00:00:00:00:0b', '02:00:00:00:00:01'], addresses: ['192.0.2.10'] });
  });

  test('reads the one MAC of an interface of a NetBox before 4.2', () => {
    const old = [RestInterface.parse({ id: 1, name: 'eno1', mac_address: '02:00:00:00:00:01' })];
    expect(toWiring(RestDevice.parse(captured), old, []).macs).toEqual(['02:00:00:00:00:01']);
  });
});

describe('custom fields', () => {
  test.each([
    ['provision', 'provision', null],
    [{ value: 'provision', label: 'Provision' }, 'provision', null],
    [null, null, null],
    ['', null, null],
    ['PROVISION ', null, 'PROVISION '],
    ['explode', null, 'explode'],
    [['provision'], null, '["provision"]'],
    [3, null, '3'],
  ])('desired_action %j is action %s, unknown %s (N5)', (value, desiredAction, unknownAction) => {
    expect(mapped({ desired_action: value })).toMatchObject({ desiredAction, unknownAction });
  });

  test('a field that the site has not created reads as not set', () => {
    const device = toDevice(RestDevice.parse({ ...captured, custom_fields: {} }), NO_WIRING, null);
    expect(device).toMatchObject({ desiredAction: null, nodeClass: null, systemUuid: null, rootDisk: null, wipeDisks: [], tpmEk: null, bmc: null });
  });

  test.each([
    [UUID.toUpperCase(), UUID],
    [` ${UUID} `, UUID],
    ['00000000-0000-0000-0000-000000000000', null],
    ['FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', null],
    ['', null],
    [null, null],
  ])('system_uuid %j is %s', (value, uuid) => {
    expect(mapped({ system_uuid: value }).systemUuid).toBe(uuid);
  });

  test.each([
    [['S1', 'S2', 'S1'], ['S1', 'S2']],
    ['S1,S2', ['S1', 'S2']],
    ['S1, S2\nS3  wwn-0x5000', ['S1', 'S2', 'S3', 'wwn-0x5000']],
    ['["S 1","S2"]', ['S 1', 'S2']],
    [[], []],
    ['', []],
    [null, []],
    [[{ value: 'S1', label: 'S1' }], ['S1']],
  ])('wipe_disks %j names %j', (value, disks) => {
    expect(mapped({ wipe_disks: value }).wipeDisks).toEqual(disks);
  });

  test.each([
    ['amt', '198.51.100.10/24', {}, { type: 'amt', host: '198.51.100.10' }],
    [{ value: 'amt', label: 'AMT' }, '2001:db8::5/64', {}, { type: 'amt', host: '2001:db8::5' }],
    ['amt', '127.0.0.1/8', { metalflow: { bmc_port: 16_992 } }, { type: 'amt', host: '127.0.0.1', port: 16_992 }],
    ['amt', null, {}, null],
    ['manual', null, {}, { type: 'manual', host: '' }],
    [null, '198.51.100.10/24', {}, null],
  ])('bmc_type %j with oob_ip %s and context %j is BMC %j', (type, oob, context, bmc) => {
    expect(mapped({ bmc_type: type }, { oob_ip: oob && { id: 2, address: oob }, config_context: context }).bmc).toEqual(bmc);
  });

  test.each([
    ['redfish', { bmc_system: 'Self', bmc_boot: 'uefi-http', bmc_tls: false }, { system: 'Self', boot: 'uefi-http', tls: false, systemUuid: UUID }],
    ['redfish', {}, { systemUuid: UUID }],
    ['ipmi', { bmc_system: 'Self', bmc_boot: 'pxe' }, { systemUuid: UUID }],
    ['amt', { bmc_system: 'Self', bmc_boot: 'pxe', bmc_tls: true }, { tls: true }],
    ['amt', { bmc_port: 16_993, bmc_fingerprint: PIN.toUpperCase().match(/../g)!.join(':') }, { port: 16_993, fingerprint: PIN }],
    ['redfish', { bmc_fingerprint: PIN }, { fingerprint: PIN, systemUuid: UUID }],
  ])('%s takes from the context %j what concerns it', (type, metalflow, bmc) => {
    expect(mapped({ bmc_type: type, system_uuid: UUID }, { config_context: { metalflow } }).bmc).toEqual({ type, host: '198.51.100.10', ...bmc });
  });
});

describe('a field that cannot be read is named', () => {
  test.each([
    ['system_uuid', { system_uuid: 'not-a-uuid' }, {}],
    ['system_uuid', { system_uuid: '00000000' }, {}],
    ['node_class', { node_class: ['compute'] }, {}],
    ['root_disk', { root_disk: 5 }, {}],
    ['root_disk', { root_disk: 'x'.repeat(201) }, {}],
    ['wipe_disks', { wipe_disks: { serial: 'S1' } }, {}],
    ['wipe_disks', { wipe_disks: ['S1', ''] }, {}],
    ['wipe_disks', { wipe_disks: '["S1"' }, {}],
    ['wipe_disks', { wipe_disks: Array.from({ length: 65 }, (_, n) => `S${n}`) }, {}],
    ['bmc_type', { bmc_type: 'ilo' }, {}],
    ['config_context.metalflow.bmc_port', { bmc_type: 'amt' }, { config_context: { metalflow: { bmc_port: '16992' } } }],
    ['config_context.metalflow.bmc_port', { bmc_type: 'amt' }, { config_context: { metalflow: { bmc_port: 70_000 } } }],
    ['config_context.metalflow.bmc_tls', { bmc_type: 'amt' }, { config_context: { metalflow: { bmc_tls: 'no' } } }],
    ['config_context.metalflow.bmc_fingerprint', { bmc_type: 'amt' }, { config_context: { metalflow: { bmc_fingerprint: PIN.slice(2) } } }],
    ['config_context.metalflow.bmc_system', { bmc_type: 'redfish' }, { config_context: { metalflow: { bmc_system: 1 } } }],
    ['config_context.metalflow.bmc_boot', { bmc_type: 'redfish' }, { config_context: { metalflow: { bmc_boot: 'floppy' } } }],
    ['name', {}, { name: null }],
    ['last_updated', {}, { last_updated: 'yesterday' }],
  ])('%s', (field, fields, members) => {
    expect(() => mapped(fields, members)).toThrow(expect.objectContaining({ code: 'device_invalid', details: expect.objectContaining({ field }) }));
  });
});
