import { readMetadata, toInterfaces } from '../../src/netbox/metadata.js';
import { RestAddress, RestDevice, RestInterface } from '../../src/netbox/shapes.js';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAs4PDxcL1kzZ1pUS0ZPYnFiVGdHTnR2QmRhZ0tX anna@example';
const device = (context: unknown, members: Record<string, unknown> = {}): RestDevice =>
  RestDevice.parse({ id: 1, name: 'node-1', status: { value: 'active', label: 'Active' }, site: { slug: 'lab' }, config_context: context, last_updated: '2026-11-30T11:50:07Z', ...members });
const onFirst = (address: string, role: string | null = null): RestAddress =>
  RestAddress.parse({ id: 9, address, role: role && { value: role, label: role }, assigned_object_type: 'dcim.interface', assigned_object_id: 1 });

test('an interface keeps its addresses with their prefix, and none that it shares with other machines', () => {
  const hosts = [RestInterface.parse({ id: 1, name: 'eno1', mac_address: '02:00:00:00:00:0A' }), RestInterface.parse({ id: 2, name: 'lo', mac_address: null })];
  const shared = ['anycast', 'vip', 'vrrp', 'hsrp', 'glbp', 'carp'].map((role, index) => onFirst(`192.0.2.${100 + index}/24`, role));
  expect(toInterfaces(hosts, [onFirst('192.0.2.10/24'), onFirst('2001:db8::a/64', 'secondary'), ...shared, { ...onFirst('198.51.100.1/32'), assigned_object_id: 2 }])).toEqual([
    { name: 'eno1', mac: '02:00:00:00:00:0a', addresses: ['192.0.2.10/24', '2001:db8::a/64'] },
  ]);
});

test('tags, primary addresses, keys, user-data and network are read', () => {
  const context = { metalflow: { ssh_keys: [KEY], user_data: 'secret:web', network: { gateways: ['192.0.2.1'], nameservers: ['192.0.2.53'] } } };
  const rest = device(context, { tags: [{ id: 1, slug: 'gpu', name: 'GPU' }], primary_ip4: { id: 9, address: '192.0.2.10/24' }, primary_ip6: null });
  expect(readMetadata(rest, [])).toEqual({
    tags: ['gpu'], interfaces: [], primary: ['192.0.2.10'], sshKeys: [KEY], userData: 'secret:web', network: { gateways: ['192.0.2.1'], nameservers: ['192.0.2.53'], search: [] },
  });
});

test.each([undefined, null, {}, { metalflow: null }, { metalflow: { bmc_port: 1 } }])('a config context %j states nothing', (context) => {
  expect(readMetadata(device(context), [])).toMatchObject({ sshKeys: [], userData: null, network: null });
});

test.each<[object, string]>([
  [{ ssh_keys: 'ssh-ed25519 AAAA' }, 'ssh_keys'],
  [{ ssh_keys: [KEY, 'command="reboot" ssh-ed25519 AAAA'] }, 'ssh_keys.1'],
  [{ ssh_keys: [`${KEY}\nssh-rsa AAAA`] }, 'ssh_keys.0'],
  [{ user_data: '#cloud-config' }, 'user_data'],
  [{ user_data: 'secret:../bmc-amt.json' }, 'user_data'],
  [{ network: { nameservers: ['192.0.2.53'] } }, 'network.gateways'],
  [{ network: { gateways: ['gw'] } }, 'network.gateways.0'],
  [{ network: { gateways: [], gateway: '192.0.2.1' } }, 'network'],
])('a config context with metalflow %j names the wrong member', (metalflow, member) => {
  expect(() => readMetadata(device({ metalflow }), [])).toThrow(expect.objectContaining({ code: 'device_invalid', details: expect.objectContaining({ field: `config_context.metalflow.${member}` }) as object }) as Error);
});
