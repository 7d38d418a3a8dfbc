/** LLDP, as far as a neighbour's name goes: IEEE 802.1AB-2016 §8 (LLDPDU and TLV formats) and §9.2.7.7 (what is discarded). */

export type LldpIdKind =
  | 'mac' | 'network address' | 'interface name' | 'interface alias' | 'local'
  | 'chassis component' | 'port component' | 'agent circuit id' | 'reserved';

export interface LldpId {
  readonly kind: LldpIdKind;
  /** MAC and IP addresses in their usual text form; text as sent, without control characters; hex for what is none of these. */
  readonly text: string;
}

export type LldpReading =
  | {
    readonly kind: 'neighbour';
    readonly chassis: LldpId;
    readonly port: LldpId;
    readonly ttlSeconds: number;
    readonly system: string | null;
    /** Often the name people know, where the port id is a number. */
    readonly portDescription: string | null;
  }
  /** TTL 0: the neighbour says that it is going; there is no neighbour. */
  | { readonly kind: 'removed'; readonly chassis: LldpId; readonly port: LldpId }
  /** The whole frame is discarded. */
  | { readonly kind: 'malformed'; readonly why: string };

interface Tlv {
  readonly type: number;
  readonly value: Buffer;
}

const TYPE = { end: 0, chassis: 1, port: 2, ttl: 3, portDescription: 4, systemName: 5 } as const;

/** §8.5.2.2, by subtype. */
const CHASSIS_KINDS: readonly LldpIdKind[] = ['reserved', 'chassis component', 'interface alias', 'port component', 'mac', 'network address', 'interface name', 'local'];
/** §8.5.3.2, by subtype. */
const PORT_KINDS: readonly LldpIdKind[] = ['reserved', 'interface alias', 'port component', 'mac', 'network address', 'interface name', 'agent circuit id', 'local'];

/** IANA address family numbers. */
const FAMILY = { ipv4: 1, ipv6: 2 } as const;

/** What follows the End TLV is Ethernet padding. A missing End TLV is forgiven: some switches leave it out. */
function readTlvs(frame: Buffer): Tlv[] | null {
  const tlvs: Tlv[] = [];
  for (let at = 0; at < frame.length; ) {
    if (at + 2 > frame.length) return null;
    const header = frame.readUInt16BE(at);
    const [type, length] = [header >> 9, header & 0x1ff];
    if (type === TYPE.end) break;
    const end = at + 2 + length;
    if (end > frame.length) return null;
    tlvs.push({ type, value: frame.subarray(at + 2, end) });
    at = end;
  }
  return tlvs;
}

/** UTF-8 without the padding NULs some switches add; control characters must reach no terminal and no log. */
const readText = (bytes: Buffer): string => bytes.toString('utf8').replace(/\0+$/, '').replace(/\p{Cc}/gu, '\ufffd');

const isPrintable = (bytes: Buffer): boolean => bytes.every((byte) => byte >= 0x20 && byte < 0x7f);

/** MikroTik sends its MAC as text under the MAC subtype: that stays text, never a 17-byte MAC. */
function macText(bytes: Buffer): string {
  if (bytes.length === 6) return bytes.toString('hex').match(/../g)!.join(':');
  return isPrintable(bytes) ? bytes.toString('latin1') : bytes.toString('hex');
}

function networkAddressText(bytes: Buffer): string {
  const [family, address] = [bytes[0], bytes.subarray(1)];
  if (family === FAMILY.ipv4 && address.length === 4) return address.join('.');
  if (family === FAMILY.ipv6 && address.length === 16) {
    const long = address.toString('hex').match(/.{4}/g)!.join(':');
    // A URL writes an IPv6 address in its shortest form (RFC 5952).
    return new URL(`http://[${long}]/`).hostname.slice(1, -1);
  }
  return bytes.toString('hex');
}

function readId(value: Buffer, kinds: readonly LldpIdKind[]): LldpId {
  const kind = kinds[value[0]!] ?? 'reserved';
  const bytes = value.subarray(1);
  if (kind === 'mac') return { kind, text: macText(bytes) };
  if (kind === 'network address') return { kind, text: networkAddressText(bytes) };
  return { kind, text: kind === 'reserved' ? bytes.toString('hex') : readText(bytes) };
}

/** Reads an LLDPDU (the bytes after ethertype 88cc). Never throws. TLVs of unknown or organisational types are skipped. */
export function parseLldp(frame: Buffer): LldpReading {
  const tlvs = readTlvs(frame);
  if (!tlvs) return { kind: 'malformed', why: 'a TLV runs over the end of the frame' };
  const [chassis, port, ttl, ...rest] = tlvs;
  if (chassis?.type !== TYPE.chassis || port?.type !== TYPE.port || ttl?.type !== TYPE.ttl) {
    return { kind: 'malformed', why: 'it does not begin with chassis id, port id and TTL' };
  }
  if (chassis.value.length < 2 || port.value.length < 2 || ttl.value.length < 2) return { kind: 'malformed', why: 'a mandatory TLV is too short' };
  if (rest.some((tlv) => tlv.type <= TYPE.ttl)) return { kind: 'malformed', why: 'a mandatory TLV is there twice' };

  const ids = { chassis: readId(chassis.value, CHASSIS_KINDS), port: readId(port.value, PORT_KINDS) };
  const ttlSeconds = ttl.value.readUInt16BE(0);
  if (ttlSeconds === 0) return { kind: 'removed', ...ids };
  const text = (type: number): string | null => {
    const tlv = rest.find((candidate) => candidate.type === type);
    return (tlv && readText(tlv.value)) || null;
  };
  return { kind: 'neighbour', ...ids, ttlSeconds, system: text(TYPE.systemName), portDescription: text(TYPE.portDescription) };
}
