/** The boot role: TFTP, iPXE, assets, syslog, and the proxy DHCP where it is on. It needs the store alone, and answers safely without it. */
import type { Config } from '../config/index.js';
import { createBootFiles } from '../boot/files.js';
import { createBootGate } from '../boot/gate.js';
import { createBootHttp } from '../boot/http.js';
import { findIpxeBinaries, IPXE_BINARIES, placeholderBinary } from '../boot/ipxe/binaries.js';
import { autoexecScript } from '../boot/ipxe/scripts.js';
import { BootSettings } from '../boot/settings.js';
import { startTftpServer } from '../boot/tftp/server.js';
import { MetalflowError } from '../domain/errors.js';
import type { Store } from '../store/index.js';
import { listenAddress } from '../telemetry/listening.js';
import type { Logger } from '../telemetry/log.js';
import { openProxyDhcp } from './dhcp.js';
import type { Metrics } from './metrics.js';
import { openSyslog } from './syslog.js';
import { createCloser, listen, urlOf, type RunningRole } from './role.js';

export interface BootRole extends RunningRole {
  readonly tftpPort: number;
  readonly httpUrl: string;
  readonly syslogPort: number;
}

export interface BootDeps {
  readonly config: Config;
  readonly store: Store;
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
  const agentHost = new URL(agentUrl).hostname.replace(/^\[|\]$/g, '');
  const settings = readSettings({
    agentUrl, grpcAuthority: `${agentHost}:${config.agentGrpcPort || 42113}`, grpcTls: agentUrl.startsWith('https:'), syslogHost: agentHost,
    kernel: config.netbootKernel, initrd: config.netbootInitrd, extraArguments: config.netbootArguments, shell: config.ipxeShell, ...(config.netbootUki && { uki: config.netbootUki }), ...(config.agentImage && { agentImage: config.agentImage }),
  });

  const { missing } = await findIpxeBinaries(config.tftpRoot);
  if (missing.length > 0) log[placeholders ? 'info' : 'warn']({ missing, folder: config.tftpRoot }, placeholders ? 'no iPXE binaries: labelled placeholders are served' : 'iPXE binaries are missing: install the Debian package ipxe and set METALFLOW_TFTP_ROOT=/usr/lib/ipxe');
  const inMemory = new Map<string, Buffer>(placeholders ? missing.map((name) => [name, placeholderBinary(name)] as const) : []);
  const files = createBootFiles({ roots: [config.tftpRoot], inMemory, mayLeadOut: IPXE_BINARIES, log });

  const gate = createBootGate({ directory: store.boot, unknownMac: config.unknownMac, now, log, count: ({ artefact, answer, why }) => metrics.bootDecisions.inc({ artefact, answer, why }) });
  const http = createBootHttp({ gate, directory: store.boot, settings, assetsDir: config.assetsDir, binaries: files, log, ready: () => store.nodes.ping(), trustedProxies: config.trustedProxies });
  try {
    const httpPort = await listen(http, 'the boot plane', config.bindAddress, config.bootHttpPort);
    closer.add(() => http.close());
    const httpUrl = config.assetsUrl?.replace(/\/assets\/?$/, '') ?? urlOf('http', config.bindAddress, httpPort);
    inMemory.set('autoexec.ipxe', Buffer.from(autoexecScript(httpUrl)));
    const tftp = await startTftpServer({ gate, files, address, port: config.tftpPort, log, count: (outcome) => metrics.tftpTransfers.inc({ outcome }) });
    closer.add(() => tftp.close());
    const syslog = await openSyslog({ config, store, address, log, metrics });
    closer.add(() => syslog.close());
    if (config.proxyDhcp === 'on') {
      const proxy = await openProxyDhcp({ config, gate, httpPort, log, metrics });
      closer.add(() => proxy.close());
    }
    log.info({ tftp: tftp.port, http: httpUrl, syslog: syslog.port }, 'boot is up');
    return { tftpPort: tftp.port, httpUrl, syslogPort: syslog.port, close: () => closer.close() };
  } catch (error) {
    await closer.close().catch(() => undefined);
    throw error instanceof MetalflowError ? error : new MetalflowError('setting_invalid', { name: 'boot', why: (error as Error).message }, { cause: error });
  }
}

const SETTING_OF: Readonly<Record<string, string>> = { kernel: 'METALFLOW_NETBOOT_KERNEL', initrd: 'METALFLOW_NETBOOT_INITRD', uki: 'METALFLOW_NETBOOT_UKI', extraArguments: 'METALFLOW_NETBOOT_ARGUMENTS', agentImage: 'METALFLOW_AGENT_IMAGE', agentUrl: 'METALFLOW_AGENT_URL' };

/** Every value ends up in an iPXE script; what cannot stand there stops the start, with the setting's name. @throws setting_invalid */
function readSettings(values: Record<string, unknown>): BootSettings {
  const parsed = BootSettings.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new MetalflowError('setting_invalid', { name: SETTING_OF[String(issue!.path[0])] ?? String(issue!.path[0]), why: issue!.message });
}
