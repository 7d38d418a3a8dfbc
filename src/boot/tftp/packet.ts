/** TFTP packets (RFC 1350 §5, RFC 2347): bytes in, a typed packet out, and back. Pure; no input makes it throw. */

export const OPCODE = { rrq: 1, wrq: 2, data: 3, ack: 4, error: 5, oack: 6 } as const;
/** RFC 1350 appendix, RFC 2347. */
export const TFTP_ERROR = { undefined: 0, notFound: 1, accessViolation: 2, illegalOperation: 4, unknownTransfer: 5, optionsRefused: 8 } as const;
export type TftpErrorCode = (typeof TFTP_ERROR)[keyof typeof TFTP_ERROR];

export interface TftpOption {
  /** As the client wrote it; compared in lower case. */
  readonly name: string;
  readonly value: string;
}

export type TftpPacket =
  | { readonly kind: 'rrq' | 'wrq'; readonly file: string; readonly mode: string; readonly options: readonly TftpOption[] }
  | { readonly kind: 'ack'; readonly block: number }
  | { readonly kind: 'error'; readonly code: number; readonly text: string }
  | { readonly kind: 'data'; readonly block: number; readonly data: Buffer }
  | { readonly kind: 'oack'; readonly options: readonly TftpOption[] }
  | { readonly kind: 'unreadable'; readonly why: string };

/** A request fits one unfragmented datagram and has a handful of options; more is no client of ours. */
const REQUEST_MOST_BYTES = 1024;
const MOST_OPTIONS = 16;

const unreadable = (why: string): TftpPacket => ({ kind: 'unreadable', why });

export function readPacket(bytes: Buffer): TftpPacket {
  if (bytes.length < 4) return unreadable('shorter than any packet');
  switch (bytes.readUInt16BE(0)) {
    case OPCODE.rrq:
      return readRequest('rrq', bytes.subarray(2));
    case OPCODE.wrq:
      return readRequest('wrq', bytes.subarray(2));
    case OPCODE.data:
      return { kind: 'data', block: bytes.readUInt16BE(2), data: bytes.subarray(4) };
    case OPCODE.ack:
      return { kind: 'ack', block: bytes.readUInt16BE(2) };
    case OPCODE.error:
      // Some clients leave the final NUL out, or the text; the code is what counts.
      return { kind: 'error', code: bytes.readUInt16BE(2), text: readStrings(bytes.subarray(4), 1)[0] ?? '' };
    case OPCODE.oack:
      return { kind: 'oack', options: readOptions(readStrings(bytes.subarray(2), 2 * MOST_OPTIONS)) };
    default:
      return unreadable('unknown opcode');
  }
}

function readRequest(kind: 'rrq' | 'wrq', body: Buffer): TftpPacket {
  if (body.length > REQUEST_MOST_BYTES) return unreadable('request too long');
  const [file, mode, ...rest] = readStrings(body, 2 + 2 * MOST_OPTIONS);
  if (file === undefined || mode === undefined) return unreadable('request without file or mode');
  return { kind, file, mode: mode.toLowerCase(), options: readOptions(rest) };
}

/** NUL-ended strings; what follows the last NUL is dropped. */
function readStrings(bytes: Buffer, most: number): string[] {
  const strings: string[] = [];
  for (let from = 0, to = bytes.indexOf(0, from); to >= 0 && strings.length < most; from = to + 1, to = bytes.indexOf(0, from)) {
    strings.push(bytes.toString('utf8', from, to));
  }
  return strings;
}

/** Pairs; an empty name ends the list, because some firmware pads its request with NULs. */
function readOptions(strings: readonly string[]): TftpOption[] {
  const options: TftpOption[] = [];
  for (let index = 0; index + 1 < strings.length && strings[index] !== ''; index += 2) {
    options.push({ name: strings[index]!, value: strings[index + 1]! });
  }
  return options;
}

const head = (opcode: number, second?: number): Buffer => {
  const bytes = Buffer.alloc(second === undefined ? 2 : 4);
  bytes.writeUInt16BE(opcode, 0);
  if (second !== undefined) bytes.writeUInt16BE(second, 2);
  return bytes;
};

/** @param block counted from 1 without end; on the wire it rolls over to 0 */
export const dataPacket = (block: number, data: Buffer): Buffer => writeData(Buffer.allocUnsafe(4 + data.length), block, data, 0, data.length);

/** Bytes `from` to `to` of `source` as a block, written into a packet of that length. */
export function writeData(packet: Buffer, block: number, source: Buffer, from: number, to: number): Buffer {
  packet[0] = 0;
  packet[1] = OPCODE.data;
  packet[2] = (block >>> 8) & 0xff;
  packet[3] = block & 0xff;
  source.copy(packet, 4, from, to);
  return packet;
}
export const ackPacket = (block: number): Buffer => head(OPCODE.ack, block & 0xffff);
export const errorPacket = (code: TftpErrorCode, text: string): Buffer => Buffer.concat([head(OPCODE.error, code), Buffer.from(`${text}\0`, 'utf8')]);
export const oackPacket = (options: readonly TftpOption[]): Buffer => Buffer.concat([head(OPCODE.oack), optionBytes(options)]);
export const requestPacket = (kind: 'rrq' | 'wrq', file: string, mode: string, options: readonly TftpOption[] = []): Buffer =>
  Buffer.concat([head(OPCODE[kind]), Buffer.from(`${file}\0${mode}\0`, 'utf8'), optionBytes(options)]);

const optionBytes = (options: readonly TftpOption[]): Buffer => Buffer.from(options.map(({ name, value }) => `${name}\0${value}\0`).join(''), 'utf8');
