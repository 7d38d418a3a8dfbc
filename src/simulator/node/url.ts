/** URLs that the node follows. */

/** http and https only, as our iPXE is built; null for anything else. */
export function parseHttpUrl(text: string, base?: string): URL | null {
  if (!URL.canParse(text, base)) return null;
  const url = new URL(text, base);
  return url.protocol === 'http:' || url.protocol === 'https:' ? url : null;
}
