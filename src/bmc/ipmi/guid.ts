/** The System GUID as a machine UUID. IPMI says one byte order, SMBIOS another, RFC 4122 a third, and BMCs send any of them. */
import { parseUuid, uuidFromSmbiosHex } from '../../domain/uuid.js';

export const BYTE_ORDERS = ['smbios', 'rfc4122', 'ipmi'] as const;
export type ByteOrder = (typeof BYTE_ORDERS)[number];

export interface GuidReading {
  readonly uuid: string;
  readonly order: ByteOrder;
  /** `device`: the device's system_uuid reads so. `guess`: none does, or it has none; the version digit speaks for this order. */
  readonly by: 'device' | 'guess';
}

const dashed = (hex: string): string => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
const reversed = (hex: string): string => hex.match(/../g)!.reverse().join('');

const READERS: Readonly<Record<ByteOrder, (hex: string) => string | null>> = {
  smbios: uuidFromSmbiosHex,
  rfc4122: (hex) => parseUuid(dashed(hex)),
  ipmi: (hex) => parseUuid(dashed(reversed(hex))),
};

/** RFC 4122 §4.1: version 1 to 5 and the variant that goes with it. */
const looksMade = (uuid: string): boolean => /^.{14}[1-5].{4}[89ab]/.test(uuid);

/**
 * @param hex the 16 bytes as they came, as 32 hex digits
 * @param expected the device's system_uuid; which of 2^122 machines it is cannot be got right by chance in another order
 * @returns null when it is no UUID: all zeros, all ones
 */
export function readGuid(hex: string, expected: string | undefined): GuidReading | null {
  const clean = hex.toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(clean)) return null;
  const readings = BYTE_ORDERS.flatMap((order) => {
    const uuid = READERS[order](clean);
    return uuid === null ? [] : [{ order, uuid }];
  });
  const fitting = readings.find(({ uuid }) => uuid === expected);
  if (fitting) return { ...fitting, by: 'device' };
  const likely = readings.find(({ uuid }) => looksMade(uuid)) ?? readings[0];
  return likely ? { ...likely, by: 'guess' } : null;
}
