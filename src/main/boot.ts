/** The boot role: TFTP, iPXE, assets, syslog, and the proxy DHCP where it is on. It needs the store alone, and answers safely without it. */
import type { Config } from '../config/index.js';
import type { ClassImageRef } from '../boot/assets/listing.js';
import { createBootFiles } from '../boot/files.js';
import { createBootGate } from '../boot/gate.js';
import { createBootPlane } from '../boot/http.js';
import { findIpxeBinaries, IPXE_BINARIES, placeholderBinary } from '../boot/ipxe/binaries.js';
import { autoexecScript } from '../boot/ipxe/scripts.js';
import { BootSettings } from '../boot/settings.js';
import { startTftpServer } from '../boot/tftp/server.js';
import { MetalflowError } from '../domain/errors.js';
import { createClassCatalog } from '../images/index.js';
import { addressText, listenAddress, type ListenerState } from '../telemetry/listening.js';
import type { Logger } from '../telemetry/log.js';
import { openProxyDhcp } from './dhcp.js';
import type { LateStore } from './late-store.js';
import type { Metrics } from './metrics.js';
import { openSyslog, syslogHostOf } from './syslog.js';
import { createCloser, listen, urlOf, type RunningRole } from './role.js';
import { readTls } from './tls.js';

export interface BootRole extends RunningRole {
  readonly tftpPort: number;
  readonly httpUrl: string;
  /** Null without a certificate. */
  readonly httpsUrl: string | null;
  readonly syslogPort: number;
}

export interface BootDeps {
  readonly config: Config;
  /** May be away, also when the role starts. */
  readonly store: Omit<LateStore, 'close'>;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly agentUrl: string;
  /** Only the demo goes on without the ipxe binaries, with files that are plainly labelled placeholders. */
  readonly placeholders: boolean;
}

/** @throws port_in_use, port_forbidden, address_not_here, setting_invalid */
export async function startBoot({ config, store, log, metrics, agentUrl, placeholders }: BootDeps): Promise<BootRole> {
  const closer = createCloser();
  const address = await listenAddress(config.bindAddress);
  const now = (): Date => new Date();
  const settings = readSettings({
    agentUrl, syslogHost: syslogHostOf(config),
    kernel: config.netbootKernel, initrd: config.netbootInitrd, extraArguments: config.netbootArguments, shell: config.ipxeShell,
    ...(config.netbootUki && { uki: config.netbootUki }), ...(config.agentImage && { agentImage: config.agentImage }),
  });

  const { missing } = await findIpxeBinaries(config.tftpRoots);
  if (missing.length > 0 && placeholders) log.info({ missing, folders: config.tftpRoots }, 'no iPXE binaries: labelled placeholders are served');
  if (missing.length > 0 && !placeholders) log.warn({ missing, folders: config.tftpRoots }, 'iPXE binaries are missing: install the Debian package ipxe and set METALFLOW_TFTP_ROOT=/usr/lib/ipxe');
  const inMemory = new Map<string, Buffer>(placeholders ? missing.map((name) => [name, placeholderBinary(name)] as const) : []);
  const files = createBootFiles({ roots: config.tftpRoots, inMemory, mayLeadOut: IPXE_BINARIES, log });

  const gate = createBootGate({ directory: store.boot, unknownMac: config.unknownMac, now, log, count: ({ artefact, answer, why }) => metrics.bootDecisions.inc({ artefact, answer, why }) });
  /** Asked each time: what listened once may have failed since. */
  const listeners: Record<string, () => ListenerState> = {};
  const plane = createBootPlane({
    gate, directory: store.boot, settings, assetsDir: config.assetsDir, binaries: files, log, ready: () => store.nodes.ping(), trustedProxies: config.trustedProxies,
    listeners: () => Object.fromEntries(Object.entries(listeners).map(([name, now]) => [name, now()])), classImages: () => readClassImages(config, log),
  });
  const tls = await readTls('BOOT', config.bootTlsCert, config.bootTlsKey);
  const opened = (name: string, port: number): void => {
    listeners[name] = () => ({ state: 'listening', address: addressText(address, port) });
  };
  try {
    const http = plane.server();
    const httpPort = await listen(http, 'the boot plane', config.bindAddress, config.bootHttpPort);
    closer.add(() => http.close());
    opened('http', httpPort);
    const httpUrl = config.assetsUrl?.replace(/\/assets\/?$/, '') ?? urlOf('http', config.bindAddress, httpPort);
    let httpsUrl: string | null = null;
    if (tls) {
      const https = plane.server(tls);
      const httpsPort = await listen(https, 'the boot plane over TLS', config.bindAddress, config.bootHttpsPort);
      closer.add(() => https.close());
      opened('https', httpsPort);
      httpsUrl = urlOf('https', config.bindAddress, httpsPort);
    } else listeners['https'] = () => ({ state: 'off', why: 'METALFLOW_BOOT_TLS_CERT is not set' });
    inMemory.set('autoexec.ipxe', Buffer.from(autoexecScript(httpUrl)));
    const tftp = await startTftpServer({ gate, files, address, port: config.tftpPort, log, count: (outcome) => metrics.tftpTransfers.inc({ outcome }) });
    closer.add(() => tftp.close());
    listeners['tftp'] = () => tftp.listener();
    const syslog = await openSyslog({ config, store, address, log, metrics });
    closer.add(() => syslog.close());
    listeners['syslog'] = () => syslog.listener();
    if (config.proxyDhcp === 'on') {
      const proxy = await openProxyDhcp({ config, gate, httpPort, log, metrics });
      closer.add(() => proxy.close());
      listeners['proxy-dhcp'] = () => proxy.listener();
    } else listeners['proxy-dhcp'] = () => ({ state: 'off', why: 'METALFLOW_PROXY_DHCP is not on' });
    void plane.warm().catch((error: Error) => log.warn({ reason: error.message }, 'the digests of the images are taken when they are asked for'));
    log.info({ tftp: tftp.port, http: httpUrl, https: httpsUrl, syslog: syslog.port }, 'boot is up');
    return { tftpPort: tftp.port, httpUrl, httpsUrl, syslogPort: syslog.port, close: () => closer.close() };
  } catch (error) {
    await closer.close().catch(() => undefined);
    throw error instanceof MetalflowError ? error : new MetalflowError('setting_invalid', { name: 'boot', why: (error as Error).message }, { cause: error });
  }
}

/** Which classes install what is served here. A classes file that cannot be read costs the list its class names, nothing else. */
async function readClassImages(config: Config, log: Logger): Promise<ClassImageRef[]> {
  try {
    const classes = await createClassCatalog({ file: config.classesFile, mayBeMissing: true, log }).list();
    return classes.flatMap(({ name, image }) => (image.url.startsWith('asset:') ? [{ className: name, path: image.url.slice('asset:'.length), sha256: image.sha256 }] : []));
  } catch (error) {
    log.debug({ reason: (error as Error).message }, 'the classes file cannot be read');
    return [];
  }
}

const SETTING_OF: Readonly<Record<string, string>> = {
  kernel: 'METALFLOW_NETBOOT_KERNEL',
  initrd: 'METALFLOW_NETBOOT_INITRD',
  uki: 'METALFLOW_NETBOOT_UKI',
  extraArguments: 'METALFLOW_NETBOOT_ARGUMENTS',
  agentImage: 'METALFLOW_AGENT_IMAGE',
  agentUrl: 'METALFLOW_AGENT_URL',
  syslogHost: 'METALFLOW_SYSLOG_HOST',
};

/** Every value ends up in an iPXE script; what cannot stand there stops the start, with the setting's name. @throws setting_invalid */
function readSettings(values: Record<string, unknown>): BootSettings {
  const parsed = BootSettings.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new MetalflowError('setting_invalid', { name: SETTING_OF[String(issue!.path[0])] ?? String(issue!.path[0]), why: issue!.message });
}
