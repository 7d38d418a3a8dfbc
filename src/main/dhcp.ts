/** DHCP, wired: where the boot plane is for nodes, the printed configurations, and the proxy. */
import { networkInterfaces } from 'node:os';
import { isIPv4 } from 'node:net';
import type { BootPlace } from '../boot/dhcp/boot-file.js';
import { dnsmasqConfig } from '../boot/dhcp/dnsmasq.js';
import { keaConfig } from '../boot/dhcp/kea.js';
import { startProxyDhcp, type ProxyDhcp } from '../boot/dhcp/server.js';
import type { DhcpConfigOptions, PrintedDhcpConfig } from '../cli/roles.js';
import { isLoopback, type Config } from '../config/index.js';
import type { BootGate } from '../contracts/boot.js';
import { MetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import type { Metrics } from './metrics.js';
import { findStore } from './open-store.js';

/** PXE firmware asks this one; DHCP has no way to name another. */
const FIRMWARE_TFTP_PORT = 69;

/** The IPv4 address that the settings say nodes reach the boot plane at; loopback is no node's. */
function addressOfSettings(config: Config): string | null {
  const named = [config.assetsUrl ? new URL(config.assetsUrl).hostname : null, config.bindAddress];
  return named.find((host): host is string => host !== null && isIPv4(host) && host !== '0.0.0.0' && !isLoopback(host)) ?? null;
}

const httpUrlOf = (config: Config, address: string, port: number): string => config.assetsUrl?.replace(/\/assets$/, '') ?? `http://${address}:${port}`;

/** @throws dhcp_config_unprintable, store_unavailable */
export async function dhcpConfig(config: Config, options: DhcpConfigOptions): Promise<PrintedDhcpConfig> {
  const refuse = (what: string): never => {
    throw new MetalflowError('dhcp_config_unprintable', { what });
  };
  const address = options.serverAddress ?? addressOfSettings(config) ?? refuse('no setting says at which IPv4 address nodes reach the boot plane: give --server-address');
  if (!config.assetsUrl && config.bootHttpPort === 0) refuse('METALFLOW_BOOT_HTTP_PORT is 0, a port that nobody knows beforehand: set it, or METALFLOW_ASSETS_URL');
  if (options.pool && !options.subnet) refuse('--pool needs --subnet');
  const { store, lacks } = await findStore(config);
  const devices = await store.netbootDevices.list().finally(() => store.close());
  const site = {
    place: { address, httpUrl: httpUrlOf(config, address, config.bootHttpPort) }, devices, unknownMac: config.unknownMac,
    network: options.subnet && { ...options.subnet, pool: options.pool },
  };
  const warnings = [
    ...(config.tftpPort === FIRMWARE_TFTP_PORT ? [] : [`METALFLOW_TFTP_PORT is ${config.tftpPort}, and firmware asks port ${FIRMWARE_TFTP_PORT} only: no BIOS and no UEFI will boot by PXE`]),
    ...(lacks ? [lacks.message] : []),
    ...(devices.length > 0 || config.unknownMac === 'menu' ? [] : ['the store knows no device yet, so no machine is given a boot file: print it again when NetBox has been read']),
  ];
  return { config: options.server === 'kea' ? keaConfig(site) : dnsmasqConfig(site), devices: devices.length, warnings };
}

/** For a wildcard: the machine's own address, when it has just one. */
function onlyAddress(): string | null {
  const found = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []).filter(({ family, internal }) => family === 'IPv4' && !internal);
  return found.length === 1 ? found[0]!.address : null;
}

/** @throws setting_invalid, port_in_use, port_forbidden, address_not_here, proxy_dhcp_not_alone */
export async function openProxyDhcp({ config, gate, httpPort, log, metrics }: { config: Config; gate: BootGate; httpPort: number; log: Logger; metrics: Metrics }): Promise<ProxyDhcp> {
  const isWildcard = config.bindAddress === '0.0.0.0' || config.bindAddress === '::';
  const address = addressOfSettings(config) ?? (isWildcard ? onlyAddress() : null);
  if (address === null) {
    const why = 'needs the IPv4 address at which nodes reach the boot plane: in METALFLOW_BIND_ADDRESS, or in METALFLOW_ASSETS_URL';
    throw new MetalflowError('setting_invalid', { name: 'METALFLOW_PROXY_DHCP', why });
  }
  const place: BootPlace = { address, httpUrl: httpUrlOf(config, address, httpPort) };
  const proxy = await startProxyDhcp({ gate, place, log, count: (outcome) => metrics.proxyDhcp.inc({ outcome }) });
  log.info({ ...place, port: proxy.port, bootServerPort: proxy.bootServerPort }, 'proxy DHCP is up');
  return proxy;
}
