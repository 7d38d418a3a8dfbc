/** Who is asking: the sender's address, in one spelling (field failure M1). */
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

const MAPPED_DOTTED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
const MAPPED_HEX = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i;

/** The two 16-bit groups behind `::ffff:` as dotted IPv4. */
function dotted(high: string, low: string): string {
  const [a, b] = [parseInt(high, 16), parseInt(low, 16)];
  return [a >> 8, a & 0xff, b >> 8, b & 0xff].join('.');
}

/** IPv4 text for IPv4 and IPv4-mapped addresses, lower-case IPv6 without its zone, null for anything else (a port, a name). */
export function normalizeAddress(text: string): string | null {
  const address = text.trim().replace(/%.*$/, '').toLowerCase();
  if (isIP(address) === 0) return null;
  const mapped = MAPPED_DOTTED.exec(address)?.[1];
  if (mapped) return mapped;
  const hex = MAPPED_HEX.exec(address);
  return hex ? dotted(hex[1]!, hex[2]!) : address;
}

/**
 * The right-most hop that is no trusted proxy (`trustedProxies` of the server; without any, X-Forwarded-For is not read).
 * null when a trusted proxy forwards something that is no address: then nobody may be taken for the sender.
 */
export const senderOf = (request: FastifyRequest): string | null => normalizeAddress(request.ip);
