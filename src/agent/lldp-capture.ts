/** Hears the LLDP neighbour of one NIC. Node has no raw sockets, so tcpdump of the netboot system listens. */
import { spawn } from 'node:child_process';

/** Switches send every 30 s (IEEE 802.1AB §9.2.5.7). */
const LISTEN_MS = 35_000;
const PCAP_HEADER = 24;
const RECORD_HEADER = 16;
const ETHERNET_HEADER = 14;

/** The LLDPDU of the first frame in a pcap stream (after ethertype 88cc); null while it is not complete, or of another kind. */
export function lldpduOf(pcap: Buffer): Buffer | null {
  const frameAt = PCAP_HEADER + RECORD_HEADER;
  if (pcap.length < frameAt + ETHERNET_HEADER) return null;
  const magic = pcap.readUInt32LE(0);
  const little = magic === 0xa1b2c3d4 || magic === 0xa1b23c4d;
  const length = little ? pcap.readUInt32LE(PCAP_HEADER + 8) : pcap.readUInt32BE(PCAP_HEADER + 8);
  if (length < ETHERNET_HEADER || length > 1600 || pcap.length < frameAt + length) return null;
  const frame = pcap.subarray(frameAt, frameAt + length);
  return frame.readUInt16BE(12) === 0x88cc ? frame.subarray(ETHERNET_HEADER) : null;
}

/** null when nothing was heard in time, or there is no tcpdump. */
export function captureLldp(nic: string, listenMs = LISTEN_MS): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const child = spawn('tcpdump', ['-Z', 'root', '-i', nic, '-c', '1', '-U', '-w', '-', 'ether', 'proto', '0x88cc'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const timer = setTimeout(() => child.kill('SIGKILL'), listenMs);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    const done = (): void => {
      clearTimeout(timer);
      resolve(lldpduOf(Buffer.concat(chunks)));
    };
    child.on('error', done);
    child.on('close', done);
  });
}
