/** DHCP packets (RFC 951, RFC 2131 §2, RFC 2132 §9.3, RFC 3396): bytes in, a typed packet out, and back. Pure; no input makes it throw. */
import { isIPv4 } from 'node:net';
import { OPTION } from './options.js';

export interface DhcpPacket {
  readonly kind: 'request' | 'reply';
  readonly hops: number;
  readonly xid: number;
  /** Seconds since the client began, by its own word. */
  readonly seconds: number;
  /** The client cannot take unicast before it has an address. */
  readonly broadcast: boolean;
  /** Client's own address, once it has one. */
  readonly ciaddr: string;
  /** The address that is given: from us always 0.0.0.0. */
  readonly yiaddr: string;
  /** The server of the next step, i.e. TFTP. */
  readonly siaddr: string;
  /** The relay that brought it. */
  readonly giaddr: string;
  /** Six octets, lower case, colons between. */
  readonly mac: string;
  readonly serverName: string;
  readonly file: string;
  /** By code; one that came in parts is joined (RFC 3396). In the order of the wire. */
  readonly options: ReadonlyMap<number, Buffer>;
}

export type DhcpReading = { readonly kind: 'packet'; readonly packet: DhcpPacket } | { readonly kind: 'unreadable'; readonly why: string };

export const NO_ADDRESS = '0.0.0.0';
/** From op to the end of chaddr, sname and file; the magic cookie and the options follow. */
const FIXED = 236;
const AT = { op: 0, htype: 1, hlen: 2, hops: 3, xid: 4, secs: 8, flags: 10, ciaddr: 12, yiaddr: 16, siaddr: 20, giaddr: 24, chaddr: 28, sname: 44, file: 108 } as const;
const SNAME_BYTES = 64;
export const FILE_BYTES = 128;
const COOKIE = 0x63825363;
const BROADCAST = 0x8000;
const ETHERNET = 1;
const MAC_BYTES = 6;
/** RFC 951: shorter ones are dropped by old relays and firmware. */
const LEAST_SENT = 300;
const LONGEST_READ = 4096;
const OVERLOAD = { file: 1, serverName: 2 } as const;

const unreadable = (why: string): DhcpReading => ({ kind: 'unreadable', why });

/** Only Ethernet is read: every machine that metalflow knows is known by such a MAC. */
export function readDhcp(bytes: Buffer): DhcpReading {
  if (bytes.length < FIXED + 4) return unreadable('shorter than any DHCP packet');
  if (bytes.length > LONGEST_READ) return unreadable('longer than any DHCP packet');
  const op = bytes[AT.op];
  if (op !== 1 && op !== 2) return unreadable('neither request nor reply');
  if (bytes[AT.htype] !== ETHERNET || bytes[AT.hlen] !== MAC_BYTES) return unreadable('not Ethernet');
  if (bytes.readUInt32BE(FIXED) !== COOKIE) return unreadable('no magic cookie: BOOTP, or something else');
  const options = new Map<number, Buffer>();
  if (!readOptions(bytes.subarray(FIXED + 4), options)) return unreadable('an option is longer than the packet');
  const serverName = bytes.subarray(AT.sname, AT.sname + SNAME_BYTES);
  const file = bytes.subarray(AT.file, AT.file + FILE_BYTES);
  // RFC 2132 §9.3: the two name fields may hold options, `file` first.
  const overload = options.get(OPTION.overload)?.[0] ?? 0;
  if (overload & OVERLOAD.file && !readOptions(file, options)) return unreadable('an option in `file` is too long');
  if (overload & OVERLOAD.serverName && !readOptions(serverName, options)) return unreadable('an option in `sname` is too long');
  return {
    kind: 'packet',
    packet: {
      kind: op === 1 ? 'request' : 'reply',
      hops: bytes[AT.hops]!,
      xid: bytes.readUInt32BE(AT.xid),
      seconds: bytes.readUInt16BE(AT.secs),
      broadcast: (bytes.readUInt16BE(AT.flags) & BROADCAST) !== 0,
      ciaddr: addressAt(bytes, AT.ciaddr),
      yiaddr: addressAt(bytes, AT.yiaddr),
      siaddr: addressAt(bytes, AT.siaddr),
      giaddr: addressAt(bytes, AT.giaddr),
      mac: [...bytes.subarray(AT.chaddr, AT.chaddr + MAC_BYTES)].map((octet) => octet.toString(16).padStart(2, '0')).join(':'),
      serverName: overload & OVERLOAD.serverName ? '' : textOf(serverName),
      file: overload & OVERLOAD.file ? '' : textOf(file),
      options,
    },
  };
}

/** @returns false when an option ends behind the bytes. One that has no END is taken as ended: some firmware leaves it out. */
function readOptions(bytes: Buffer, into: Map<number, Buffer>): boolean {
  for (let at = 0; at < bytes.length && bytes[at] !== OPTION.end; ) {
    const code = bytes[at]!;
    if (code === OPTION.pad) {
      at++;
      continue;
    }
    const length = bytes[at + 1];
    if (length === undefined || at + 2 + length > bytes.length) return false;
    const value = Buffer.from(bytes.subarray(at + 2, at + 2 + length));
    const earlier = into.get(code);
    into.set(code, earlier ? Buffer.concat([earlier, value]) : value);
    at += 2 + length;
  }
  return true;
}

const addressAt = (bytes: Buffer, at: number): string => bytes.subarray(at, at + 4).join('.');

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('latin1', 0, end < 0 ? field.length : end);
}

/** A name that does not fit its field is left out of it; what has to arrive is an option as well. */
export function writeDhcp(packet: DhcpPacket): Buffer {
  const head = Buffer.alloc(FIXED + 4);
  head[AT.op] = packet.kind === 'request' ? 1 : 2;
  head[AT.htype] = ETHERNET;
  head[AT.hlen] = MAC_BYTES;
  head[AT.hops] = packet.hops;
  head.writeUInt32BE(packet.xid, AT.xid);
  head.writeUInt16BE(packet.seconds, AT.secs);
  head.writeUInt16BE(packet.broadcast ? BROADCAST : 0, AT.flags);
  for (const field of ['ciaddr', 'yiaddr', 'siaddr', 'giaddr'] as const) addressBytes(packet[field]).copy(head, AT[field]);
  Buffer.from(packet.mac.replaceAll(':', ''), 'hex').copy(head, AT.chaddr, 0, MAC_BYTES);
  // Each field ends with a NUL, so one byte less than its size.
  if (packet.serverName.length < SNAME_BYTES) head.write(packet.serverName, AT.sname, 'latin1');
  if (packet.file.length < FILE_BYTES) head.write(packet.file, AT.file, 'latin1');
  head.writeUInt32BE(COOKIE, FIXED);
  const parts = [...packet.options].flatMap(([code, value]) => optionBytes(code, value));
  const bytes = Buffer.concat([head, ...parts, Buffer.of(OPTION.end)]);
  return bytes.length >= LEAST_SENT ? bytes : Buffer.concat([bytes, Buffer.alloc(LEAST_SENT - bytes.length)]);
}

/** RFC 3396: what is longer than 255 bytes goes out in parts under the same code. */
function optionBytes(code: number, value: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < value.length; at += 255) {
    const part = value.subarray(at, at + 255);
    parts.push(Buffer.of(code, part.length), part);
  }
  return parts;
}

/** What is no IPv4 address is written as none. */
export const addressBytes = (address: string): Buffer => Buffer.from(isIPv4(address) ? address.split('.').map(Number) : [0, 0, 0, 0]);
