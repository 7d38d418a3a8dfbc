/** The demo's world: a NetBox stand-in, classes with the tiny images, and simulated machines with AMT endpoints. */
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { programEnvironment, readConfig, type Config } from '../../config/index.js';
import type { Payload } from '../../domain/runs.js';
import { startNetboxStandIn, type NetboxStandIn } from '../../simulator/netbox-stand-in/netbox-stand-in.js';
import type { Logger } from '../../telemetry/log.js';
import { startSimulatedMachine, type SimulatedMachine } from '../simulated.js';
import type { House } from '../up.js';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const IMAGES = join(ROOT, 'demo', 'images');
/** In the order in which nodes get them; the first is also retired. */
export const DEMO_PAYLOADS = ['talos', 'cloud-init-nocloud', 'nixos-image'] as const satisfies Payload[];
const SITE = 'demo';
const AMT = { username: 'admin', password: 'P@ssw0rd1' } as const;
const DISK_BYTES = 32 * 1024 * 1024;
/** Firmware says the old state for a while after it accepted a command. */
const AMT_LAG_MS = 1200;

interface ImageRow {
  readonly payload: Payload;
  readonly file: string;
  readonly compression: 'gzip';
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly unpackedBytes: number;
  readonly contentDigest: string;
}

export interface DemoNode {
  readonly name: string;
  readonly deviceId: string;
  readonly payload: Payload;
  readonly machine: SimulatedMachine;
}

export interface DemoNetbox {
  readonly url: string;
  readonly token: string;
  /** Of its webhook. */
  readonly secret: string;
}

export interface DemoFiles {
  readonly config: Config;
  readonly operatorToken: string;
  /** SHA-256 over the unpacked image, by payload. */
  readonly expected: ReadonlyMap<Payload, string>;
}

const images = (): ImageRow[] => JSON.parse(readFileSync(join(IMAGES, 'index.json'), 'utf8')) as ImageRow[];

/** Writes secrets, classes and assets below `dir`, and reads the settings that point there. */
export function prepareFiles(dir: string, netbox: DemoNetbox, settings: Record<string, string> = {}): DemoFiles {
  const at = (...parts: string[]): string => join(dir, ...parts);
  for (const folder of ['secrets', 'assets/images', 'tftp', 'nodes']) mkdirSync(at(folder), { recursive: true, mode: 0o700 });
  const operatorToken = randomBytes(24).toString('base64url');
  writeFileSync(at('secrets', 'bmc-amt.json'), JSON.stringify(AMT), { mode: 0o600 });
  const sha256 = createHash('sha256').update(operatorToken).digest('hex');
  writeFileSync(at('secrets', 'operator-tokens.json'), JSON.stringify({ tokens: [{ name: 'demo', role: 'approver', sha256 }] }), { mode: 0o600 });
  // For a person's command line: it is the token whose digest the plane has.
  writeFileSync(at('secrets', 'operator-token'), operatorToken, { mode: 0o600 });
  const rows = images();
  for (const { file } of rows) cpSync(join(IMAGES, file), at('assets', 'images', file));
  // The simulated node boots whatever it fetched; a real one needs a netboot system here.
  for (const name of ['vmlinuz-x86_64', 'initramfs-x86_64']) writeFileSync(at('assets', name), `metalflow placeholder for ${name}: the simulated node needs no kernel\n`.repeat(64));
  const classes = rows.map(({ payload, file, sha256, sizeBytes, compression, unpackedBytes, contentDigest }) => ({
    name: payload, payload, image: { url: `asset:images/${file}`, sha256, sizeBytes, compression, unpackedBytes, contentDigest }, rootDisk: { bus: 'virtio' }, retireWipes: true,
  }));
  writeFileSync(at('classes.yaml'), stringify({ classes }));
  const ports = ['TFTP', 'BOOT_HTTP', 'SYSLOG', 'AGENT_HTTP', 'METADATA', 'OPERATOR', 'TEMPORAL', 'TEMPORAL_UI'];
  const config = readConfig({
    ...programEnvironment(),
    ...Object.fromEntries(ports.map((name) => [`METALFLOW_${name}_PORT`, '0'])),
    METALFLOW_DATA_DIR: dir, METALFLOW_SITE: SITE, METALFLOW_SIMULATION: 'true', METALFLOW_LOG_LEVEL: 'info',
    METALFLOW_NETBOX_URL: netbox.url, METALFLOW_NETBOX_TOKEN: netbox.token, METALFLOW_NETBOX_WEBHOOK_SECRET: netbox.secret,
    ...settings,
  });
  return { config, operatorToken, expected: new Map(rows.map((row) => [row.payload, row.contentDigest])) };
}

export async function startDemoNetbox(log: Logger): Promise<{ standIn: NetboxStandIn; token: string; secret: string }> {
  const token = `nbt_demo00000001.${randomBytes(20).toString('hex')}`;
  const secret = randomBytes(16).toString('hex');
  return { standIn: await startNetboxStandIn({ token, log }), token, secret };
}

/** An LLDPDU as a switch would send it: chassis MAC, port name, TTL, system name (IEEE 802.1AB). */
function lldpFrame(port: number): Buffer {
  const tlv = (type: number, value: Buffer): Buffer => Buffer.concat([Buffer.from([(type << 1) | (value.length >> 8), value.length & 0xff]), value]);
  return Buffer.concat([
    tlv(1, Buffer.from('04fcecda2e3da5', 'hex')),
    tlv(2, Buffer.concat([Buffer.from([5]), Buffer.from(`Ethernet1/${port}`)])),
    tlv(3, Buffer.from([0, 120])),
    tlv(5, Buffer.from('demo-switch')),
    Buffer.from([0, 0]),
  ]);
}

/** A machine, its BMC, and its device in NetBox, planned and waiting for a request. */
export async function addNode(index: number, dir: string, house: Pick<House, 'boot'>, netbox: NetboxStandIn, log: Logger): Promise<DemoNode> {
  const payload = DEMO_PAYLOADS[index % DEMO_PAYLOADS.length]!;
  const name = `demo-${index + 1}-${payload}`;
  const mac = `02:00:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 0xff).toString(16).padStart(2, '0')}`;
  const systemUuid = `4c4c4544-0000-4000-8000-${String(index + 1).padStart(12, '0')}`;
  const serial = `SIM-DISK-${index + 1}`;
  // Each an address of its own, by which the boot plane tells whose words it hears.
  const address = `127.0.${2 + (index >> 8)}.${index & 0xff}`;
  const machine = await startSimulatedMachine({
    dir: join(dir, 'nodes', name), systemUuid, mac, disks: [{ name: 'vda', serial, model: 'SIMULATED', sizeBytes: DISK_BYTES, bus: 'virtio' }],
    tftp: { host: '127.0.0.1', port: house.boot.tftpPort }, bootUrl: house.boot.httpUrl, amt: AMT, lldpFrame: lldpFrame(index + 1),
    syslog: { port: house.boot.syslogPort, from: address }, attestEveryMs: 1000, log,
  });
  await machine.amt.setFaults({ lagMs: AMT_LAG_MS });
  const deviceId = netbox.addDevice({
    name, status: 'planned', site: SITE, oobIp: '127.0.0.1/8', bmcPort: machine.amt.port,
    customFields: { bmc_type: 'amt', node_class: payload, system_uuid: systemUuid, wipe_disks: [serial] },
    interfaces: [{ name: 'eth0', mac, addresses: [`${address}/8`] }],
  });
  return { name, deviceId, payload, machine };
}
