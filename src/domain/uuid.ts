/** Machine UUIDs (SMBIOS system UUID). */

/** Lower-case text form, or null when it is none, or one that vendors leave unset (all zeros, all ones). */
export function parseUuid(text: string): string | null {
  const uuid = text.trim().toLowerCase();
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(uuid)) return null;
  return /^[0-]+$|^[f-]+$/.test(uuid) ? null : uuid;
}

/**
 * The text form of 32 hex digits in SMBIOS byte order, whose first three groups are little-endian (SMBIOS 2.6 §7.2.1);
 * this is how AMT's PlatformGUID comes.
 */
export function uuidFromSmbiosHex(hex: string): string | null {
  const clean = hex.trim().toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(clean)) return null;
  const swap = (from: number, to: number): string => clean.slice(from, to).match(/../g)!.reverse().join('');
  return parseUuid(`${swap(0, 8)}-${swap(8, 12)}-${swap(12, 16)}-${clean.slice(16, 20)}-${clean.slice(20)}`);
}
