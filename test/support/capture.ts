/** Packets on the loopback interface as tcpdump (Debian package tcpdump) sees them; needs root. */
import { spawn } from 'node:child_process';
import { until } from './until.js';

export interface Captured {
  readonly source: string;
  readonly destination: string;
  readonly protocol: 'udp' | 'tcp';
  /** Behind the UDP or TCP header. */
  readonly payload: Buffer;
}

export interface Capture {
  /** Ends it, once `isLast` was captured. */
  stop(isLast: (packet: Captured) => boolean): Promise<Captured[]>;
}

const FILE_HEADER = 24;
const PACKET_HEADER = 16;
const ETHERNET = 14;

/** Reads what there is of a pcap file (little-endian, Ethernet, IPv4). */
export function readPcap(bytes: Buffer): Captured[] {
  const packets: Captured[] = [];
  for (let at = FILE_HEADER; at + PACKET_HEADER <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 8);
    const frame = bytes.subarray(at + PACKET_HEADER, at + PACKET_HEADER + length);
    if (frame.length < length) break;
    at += PACKET_HEADER + length;
    if (frame.readUInt16BE(12) !== 0x0800) continue;
    const ip = frame.subarray(ETHERNET);
    const protocol = ip[9] === 17 ? 'udp' : ip[9] === 6 ? 'tcp' : null;
    if (!protocol) continue;
    const transport = ip.subarray((ip[0]! & 0x0f) * 4, ip.readUInt16BE(2));
    const address = (from: number): string => ip.subarray(from, from + 4).join('.');
    packets.push({ source: address(12), destination: address(16), protocol, payload: transport.subarray(protocol === 'udp' ? 8 : (transport[12]! >> 4) * 4) });
  }
  return packets;
}

/** @param filter of pcap, e.g. `net 127.9.0.0/24` @throws when tcpdump is missing or may not capture */
export async function startCapture(filter: string): Promise<Capture> {
  const tcpdump = spawn('tcpdump', ['-i', 'lo', '-w', '-', '-U', '--immediate-mode', '-s', '0', '-B', '16384', filter], { stdio: ['ignore', 'pipe', 'pipe'] });
  const parts: Buffer[] = [];
  tcpdump.stdout.on('data', (part: Buffer) => parts.push(part));
  const exited = new Promise<void>((resolve) => tcpdump.once('exit', () => resolve()));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    tcpdump.once('error', () => reject(new Error('tcpdump is missing: install the Debian package tcpdump')));
    tcpdump.stderr.on('data', (part: Buffer) => {
      said += part.toString();
      if (said.includes('listening on')) resolve();
    });
    void exited.then(() => reject(new Error(`tcpdump cannot capture (it needs root): ${said}`)));
  });
  return {
    async stop(isLast) {
      await until('the last packet is captured', () => readPcap(Buffer.concat(parts)).some(isLast)).catch((error: Error) => {
        tcpdump.kill('SIGKILL');
        throw new Error(`${error.message}; tcpdump: ${said}`);
      });
      tcpdump.kill('SIGTERM');
      await exited;
      if (!/\b0 packets dropped by kernel/.test(said)) throw new Error(`the capture is not whole: ${said}`);
      return readPcap(Buffer.concat(parts));
    },
  };
}
