/** The text of an option, read; what cannot be read is wrong use (exit 2). */
import { isIPv4 } from 'node:net';
import { InvalidArgumentError } from 'commander';
import { parseMac } from '../domain/mac.js';
import { parseUuid } from '../domain/uuid.js';

const read = <T>(parse: (text: string) => T | null, what: string) => (text: string): T => {
  const value = parse(text);
  if (value === null) throw new InvalidArgumentError(`This is ${what}.`);
  return value;
};

const portOf = (text: string): number | null => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : null);

function hostPortOf(text: string): { host: string; port: number } | null {
  const colon = text.lastIndexOf(':');
  const number = colon > 0 ? portOf(text.slice(colon + 1)) : null;
  return number ? { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: number } : null;
}

function networkOf(text: string): { network: string; prefix: number } | null {
  const [network = '', prefix = '', ...rest] = text.split('/');
  return isIPv4(network) && /^([1-9]|[12]\d|30)$/.test(prefix) && rest.length === 0 ? { network, prefix: Number(prefix) } : null;
}

function rangeOf(text: string): { from: string; to: string } | null {
  const [from = '', to = '', ...rest] = text.split('-');
  return isIPv4(from) && isIPv4(to) && rest.length === 0 ? { from, to } : null;
}

export const ipv4 = read((text) => (isIPv4(text) ? text : null), 'no IPv4 address');
export const ipv4Network = read(networkOf, 'no IPv4 network (10.0.0.0/24, at most /30)');
export const ipv4Range = read(rangeOf, 'no range of IPv4 addresses (10.0.0.100-10.0.0.200)');
export const uuid = read(parseUuid, 'no machine UUID');
export const mac = read(parseMac, 'no MAC address');
export const port = read(portOf, 'no port (0 to 65535)');
/** SHA-256 in any usual spelling: colons or none, either case. */
export const fingerprint = read((text) => { const digits = text.replaceAll(':', '').toLowerCase(); return /^[0-9a-f]{64}$/.test(digits) ? digits : null; }, 'no SHA-256 fingerprint (64 hex digits)');
export const bytes = read((text) => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : null), 'no number of bytes');
/** Without a slash at its end. */
export const url = read((text) => (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text.replace(/\/+$/, '') : null), 'no http or https URL');
export const hostPort = read(hostPortOf, 'no host:port');
export const wholeNumber = (least: number, most: number): ((text: string) => number) =>
  read((text) => (/^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : null), `no whole number from ${least} to ${most}`);
/** Gathers `name=value` of an option that may be repeated. */
export function named(text: string, before: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [, name, value] = /^([A-Za-z]{1,60})=([^]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('This is no name=value.');
  return { ...before, [name]: value };
}
