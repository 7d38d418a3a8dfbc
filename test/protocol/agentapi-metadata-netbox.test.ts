/** From a person's words in NetBox to what the node reads of itself. */
import { createNetboxClient } from '../../src/netbox/client.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../src/simulator/netbox-stand-in/netbox-stand-in.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { closeMetadata, KEY, openMetadata } from '../support/metadata-server.js';
import { MAC, StoreBench, UUID } from '../support/store-bench.js';

let bench: StoreBench;
let netbox: NetboxStandIn;
beforeAll(async () => {
  bench = await StoreBench.open();
  netbox = await startNetboxStandIn({ token: 'nbt_test.test', log: silentLogger() });
});
beforeEach(() => bench.clean());
afterEach(closeMetadata);
afterAll(async () => {
  await netbox.close();
  await bench.close();
});

test('interfaces, addresses and the config context reach the node', async () => {
  const id = netbox.addDevice({ name: 'node-1', site: 'ams1', status: 'active', oobIp: '198.51.100.1/24', customFields: { bmc_type: 'amt', system_uuid: UUID }, interfaces: [{ name: 'eno1', mac: MAC, addresses: ['127.0.0.44/8'] }] });
  netbox.patchDevice(id, { local_context_data: { metalflow: { ssh_keys: [KEY], network: { gateways: ['127.0.0.1'], search: ['example.org'] } } } });
  const client = createNetboxClient({ url: netbox.url, token: 'nbt_test.test', log: silentLogger(), timeoutMs: 60_000 });
  const device = (await client.readDevice(id))!;
  await client.close();
  await bench.store.devices.register(device, { state: 'active', adopted: true });

  const { ask } = await openMetadata({ directory: bench.store.metadata, orders: bench.store.orderDesk, seeds: bench.store.seeds });
  const read = async (path: string): Promise<string> => (await ask('127.0.0.44', path)).text;
  expect(await read('/latest/meta-data/instance-id')).toBe(`${UUID}-0`);
  expect(await read('/latest/meta-data/placement/availability-zone')).toBe('ams1');
  expect(await read('/latest/meta-data/public-keys/0/openssh-key')).toBe(KEY);
  expect(await read('/latest/meta-data/network/interfaces/macs/')).toBe(`${MAC}/`);
  expect(await read('/latest/network-config')).toBe(
    `version: 2\nethernets:\n  eno1:\n    match:\n      macaddress: "${MAC}"\n    set-name: "eno1"\n    addresses:\n      - "127.0.0.44/8"\n    routes:\n      - to: "0.0.0.0/0"\n        via: "127.0.0.1"\n    nameservers:\n      search:\n        - "example.org"\n`,
  );
  expect(await ask('127.0.0.45', '/latest/meta-data/')).toMatchObject({ status: 404 });
});
