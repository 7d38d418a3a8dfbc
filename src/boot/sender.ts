/** Who asked, as one comparable text. */

/**
 * The address of a socket's peer without the spellings that break matching: the IPv4-mapped prefix `::ffff:` and the zone
 * of a link-local IPv6 address (`fe80::1%eth0`). Other text is returned lower-case, as it is.
 */
export function plainAddress(address: string): string {
  const lower = address.trim().toLowerCase();
  const zone = lower.indexOf('%');
  const bare = zone < 0 ? lower : lower.slice(0, zone);
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(bare);
  return mapped ? mapped[1]! : bare;
}
