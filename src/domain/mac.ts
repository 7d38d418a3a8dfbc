/** MAC addresses in any of the usual spellings (field failure T8). */
import { MetalflowError } from './errors.js';

const FORMS = [
  /^([0-9a-f]{2})[:-]([0-9a-f]{2})[:-]([0-9a-f]{2})[:-]([0-9a-f]{2})[:-]([0-9a-f]{2})[:-]([0-9a-f]{2})$/,
  /^([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/,
  /^([0-9a-f]{2})([0-9a-f]{2})\.([0-9a-f]{2})([0-9a-f]{2})\.([0-9a-f]{2})([0-9a-f]{2})$/,
];
/** PXELINUX writes the ARP hardware type first: `01-02-01-48-aa-bb-0c`. */
const PXELINUX_PREFIX = /^01-(?=([0-9a-f]{2}-){5}[0-9a-f]{2}$)/;

/** `02:01:48:aa:bb:0c` from any usual spelling, or null. */
export function parseMac(text: string): string | null {
  const lower = text.trim().toLowerCase().replace(PXELINUX_PREFIX, '');
  for (const form of FORMS) {
    const match = form.exec(lower);
    if (match) return match.slice(1, 7).join(':');
  }
  return null;
}

/** As parseMac; throws `mac_invalid`. */
export function normalizeMac(text: string): string {
  const mac = parseMac(text);
  if (!mac) throw new MetalflowError('mac_invalid', { mac: text.slice(0, 40) });
  return mac;
}
