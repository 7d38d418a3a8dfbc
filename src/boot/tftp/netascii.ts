/** netascii (RFC 764 by way of RFC 1350 §1): a line feed travels as CR LF, a carriage return as CR NUL. */
const LF = 0x0a;
const CR = 0x0d;

export function toNetascii(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafe(bytes.length * 2);
  let length = 0;
  for (const byte of bytes) {
    if (byte === LF) out[length++] = CR;
    out[length++] = byte;
    if (byte === CR) out[length++] = 0;
  }
  return out.subarray(0, length);
}
