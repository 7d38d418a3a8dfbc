/** The network boot of UEFI firmware: ask for the boot file's size, give that up, fetch the file, run it as iPXE. */
import type { Downloader } from './download.js';
import { runScriptAt } from './ipxe/interpreter.js';
import type { IpxeOutcome } from './ipxe/model.js';
import { createVariables } from './ipxe/variables.js';
import type { Journal } from './journal.js';
import type { Sleep } from './sleep.js';
import { fetchByTftp, probeByTftp, type TftpServerAddress } from './tftp-client.js';

/** What DHCP would tell this machine. `<mac>` in `bootFile` and `scriptUrl` stands for the NIC that boots. */
export interface FirmwareSettings {
  readonly tftp: TftpServerAddress;
  /** e.g. `<mac>/ipxe.efi`. */
  readonly bootFile: string;
  /** e.g. `http://192.0.2.1:7080/ipxe/script/<mac>/auto.ipxe`. */
  readonly scriptUrl: string;
}

export type NetworkBoot = Extract<IpxeOutcome, { kind: 'boot' }> | { readonly kind: 'next-device'; readonly why: string };

export interface NetworkBootOptions {
  readonly settings: FirmwareSettings;
  readonly mac: string;
  readonly systemUuid: string;
  readonly downloader: Downloader;
  readonly sleep: Sleep;
  readonly signal: AbortSignal;
  readonly journal: Journal;
  /** Called when the boot file has taken over. */
  readonly onIpxe: () => void;
}

const next = (why: string): NetworkBoot => ({ kind: 'next-device', why });

async function fetchBootFile({ settings, mac, signal, journal }: NetworkBootOptions): Promise<string | null> {
  const request = { server: settings.tftp, file: settings.bootFile.replaceAll('<mac>', mac), signal };
  const probe = await probeByTftp(request);
  if (probe.kind !== 'size') return probe.kind === 'aborted' ? 'powered off' : `TFTP ${probe.kind}: ${probe.why}`;
  const file = await fetchByTftp(request);
  if (file.kind !== 'got') return file.kind === 'aborted' ? 'powered off' : `TFTP ${file.kind}: ${file.why}`;
  if (probe.bytes !== null && probe.bytes !== file.bytes) return `TFTP failed: ${file.bytes} bytes where ${probe.bytes} were announced`;
  journal.write('boot-file', { file: request.file, bytes: file.bytes, sha256: file.sha256 });
  return null;
}

/** Boots from the network as far as the kernel's start. Never throws: what fails leaves the next boot device its turn. */
export async function bootFromNetwork(options: NetworkBootOptions): Promise<NetworkBoot> {
  const { settings, mac, systemUuid, downloader, sleep, signal, journal, onIpxe } = options;
  const problem = await fetchBootFile(options);
  if (problem !== null) return next(problem);
  if (signal.aborted) return next('powered off');
  onIpxe();
  const variables = createVariables({ mac, systemUuid, nextServer: settings.tftp.host });
  const print = (text: string): void => journal.write('console', { text: text.slice(0, 500) });
  const outcome = await runScriptAt(settings.scriptUrl.replaceAll('<mac>', mac), { variables, downloader, sleep, signal, print });
  if (outcome.kind === 'boot') return outcome;
  return next(outcome.kind === 'exit' ? `iPXE exited with ${outcome.status}` : `iPXE failed: ${outcome.why}`);
}
