/** The spellings of a SHA-256 digest a class may use (field failure I3). */

/** 64 lower-case hex digits, or null for anything that is not one SHA-256 (`sha256:` prefix and a final newline are fine). */
export function parseSha256(text: string): string | null {
  const match = /^(?:sha256:)?([0-9a-f]{64})\n?$/i.exec(text);
  return match ? match[1]!.toLowerCase() : null;
}
